// A JSON reader, just enough for MODEL.json and MODEL.golden.json.
#pragma once

#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct Json {
    using List = std::vector<Json>;
    using Object = std::map<std::string, Json>;
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, List, Object> value;

    const Json& at(const std::string& key) const { return std::get<Object>(value).at(key); }
    const List& list() const { return std::get<List>(value); }
    const Object& object() const { return std::get<Object>(value); }
    bool has(const std::string& key) const { return object().count(key) > 0; }
    bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
    std::int64_t integer() const { return std::get<std::int64_t>(value); }

    double number() const {
        const auto* whole = std::get_if<std::int64_t>(&value);
        return whole ? static_cast<double>(*whole) : std::get<double>(value);
    }

    // Labels and classes are integers or strings; both are compared as text.
    std::string text() const {
        const auto* whole = std::get_if<std::int64_t>(&value);
        return whole ? std::to_string(*whole) : std::get<std::string>(value);
    }

    template <typename Number>
    std::vector<Number> numbers() const {
        std::vector<Number> found;
        found.reserve(list().size());
        for (const Json& each : list()) found.push_back(static_cast<Number>(each.number()));
        return found;
    }
};

class JsonReader {
public:
    explicit JsonReader(std::string_view text) : text_(text) {}

    Json document() {
        Json found = value();
        if (peek() != '\0') refuse();
        return found;
    }

private:
    Json value() {
        const char next = peek();
        if (next == '{') return {object()};
        if (next == '[') return {list()};
        if (next == '"') return {string()};
        if (take("null")) return {nullptr};
        if (take("true")) return {true};
        if (take("false")) return {false};
        return number();
    }

    Json::Object object() {
        Json::Object found;
        ++at_;
        if (skip('}')) return found;
        do {
            if (peek() != '"') refuse();
            std::string key = string();
            if (!skip(':')) refuse();
            found[std::move(key)] = value();
        } while (skip(','));
        if (!skip('}')) refuse();
        return found;
    }

    Json::List list() {
        Json::List found;
        ++at_;
        if (skip(']')) return found;
        do found.push_back(value());
        while (skip(','));
        if (!skip(']')) refuse();
        return found;
    }

    Json number() {
        const char* begin = text_.data() + at_;
        const char* end = text_.data() + text_.size();
        std::int64_t whole{};
        double real{};
        const auto as_whole = std::from_chars(begin, end, whole);
        const auto as_real = std::from_chars(begin, end, real);
        if (as_real.ec != std::errc{}) refuse();
        at_ += static_cast<std::size_t>(as_real.ptr - begin);
        if (as_whole.ec == std::errc{} && as_whole.ptr == as_real.ptr) return {whole};
        return {real};
    }

    std::string string() {
        std::string found;
        ++at_;
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] != '\\') {
                found += text_[at_++];
                continue;
            }
            const char kind = ++at_ < text_.size() ? text_[at_++] : '\0';
            constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
            if (kind == 'u')
                append_utf8(found, escape());
            else if (const auto place = from.find(kind); place != from.npos)
                found += to[place];
            else
                refuse();
        }
        if (at_++ >= text_.size()) refuse();
        return found;
    }

    std::uint32_t escape() {
        std::uint32_t code = hexadecimal();
        if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
            at_ += 2;
            code = 0x10000 + ((code - 0xD800) << 10) + (hexadecimal() - 0xDC00);
        }
        return code;
    }

    std::uint32_t hexadecimal() {
        std::uint32_t code{};
        const auto digits = text_.substr(at_, 4);
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (read.ptr != digits.data() + 4) refuse();
        at_ += 4;
        return code;
    }

    static void append_utf8(std::string& text, std::uint32_t code) {
        if (code < 0x80) {
            text += static_cast<char>(code);
            return;
        }
        const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        constexpr unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
        text += static_cast<char>(first[more] | (code >> (6 * more)));
        for (int part = more - 1; part >= 0; --part)
            text += static_cast<char>(0x80 | ((code >> (6 * part)) & 0x3F));
    }

    char peek() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    bool skip(char wanted) {
        const bool found = peek() == wanted;
        if (found) ++at_;
        return found;
    }

    bool take(std::string_view word) {
        const bool found = text_.substr(at_, word.size()) == word;
        if (found) at_ += word.size();
        return found;
    }

    [[noreturn]] void refuse() const {
        throw std::runtime_error("not JSON at character " + std::to_string(at_));
    }

    std::string_view text_;
    std::size_t at_ = 0;
};
