"""Where data sets come from: bundled or synthetic, files, the data root, downloads, the cache."""
