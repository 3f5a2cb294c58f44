/* SPDX-License-Identifier: MIT */
/* check-json.c - JSON: texts that are read, and malformed ones that are
 * refused at the right byte */
#include "config.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "gguf/text.h"
#include "tests/tap.h"

#include <math.h>

static enum gguf_status read_z(struct gg_json *j, const char *text,
                               unsigned flags, struct gguf_error *e)
{
    return gg_json_read(j, text, strlen(text), 100, flags, e);
}

static void check_refused(void)
{
    static const struct {
        const char *text;
        enum gguf_status status;
        unsigned at; /* the byte */
    } rows[] = {
        { "", GGUF_E_FORMAT, 0 },
        { "{\"a\":1,\"b\":2,\"a\":3}", GGUF_E_DUPLICATE, 13 },
        { "{\"a\":\"\xff\"}", GGUF_E_FORMAT, 6 },
        { "{\"a\":\"\xc0\x80\"}", GGUF_E_FORMAT, 6 },
        { "{\"a\":\"\\ud800\"}", GGUF_E_FORMAT, 6 },
        { "{\"a\\u0000\":1}", GGUF_E_FORMAT, 1 },
        { "{\"a\":123456789012345678901}", GGUF_E_FORMAT, 5 },
        { "{\"a\":1e999}", GGUF_E_FORMAT, 5 },
        { "{\"a\":NaN}", GGUF_E_FORMAT, 5 },
        { "{\"a\":Infinity}", GGUF_E_FORMAT, 5 },
        { "{\"a\":01}", GGUF_E_FORMAT, 5 },
        { "{\"a\":1e}", GGUF_E_FORMAT, 5 },
        { "{\"a\":\"\\udc00\"}", GGUF_E_FORMAT, 6 },
        { "{\"a\":\"\\ud83d\\u0041\"}", GGUF_E_FORMAT, 6 },
        { "{\"a\":-9223372036854775809}", GGUF_E_FORMAT, 5 },
        { "{\"a\":tru}", GGUF_E_FORMAT, 5 },
        { "{\"a\" 1}", GGUF_E_FORMAT, 5 },
        { "{\"a\":1,}", GGUF_E_FORMAT, 7 },
        { "{\"a\":1} x", GGUF_E_FORMAT, 8 },
        { "{\"a\":[1,2}", GGUF_E_FORMAT, 9 },
        { "{\"a\":\"x", GGUF_E_FORMAT, 7 },
        { "{\"a\\", GGUF_E_FORMAT, 4 },
        { "3", GGUF_E_FORMAT, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_json j;
        struct gguf_error e;
        gguf_error_clear(&e);
        enum gguf_status st = read_z(&j, rows[i].text, 0, &e);
        ok(st == rows[i].status && e.offset == 100 + rows[i].at && !j.root,
           "refused at %llu: %s", (unsigned long long)e.offset, e.message);
    }
}

/* Lines and columns count characters from 1. A message quotes the character
 * that stands in place of the expected one. */
static void check_messages(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        { "", "line 1, column 1: '[' or '{' expected, found the end of the "
              "file" },
        { "<a>", "line 1, column 1: '[' or '{' expected, found '<'" },
        { "{\n\"\xc3\xa9\": \xc3\xa9}",
          "line 2, column 6: a value expected, found '\xc3\xa9'" },
        { "[1,\n 2 \x1b", "line 2, column 4: ',' or ']' expected, found "
                          "'\\x1B'" },
        { "[1] 2", "line 1, column 5: the end of the file expected, found "
                   "'2'" },
        { "[\"a", "line 1, column 4: a string has no closing quotation mark" },
    };
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        struct gg_json j;
        struct gguf_error e;
        gguf_error_clear(&e);
        ok(read_z(&j, rows[i].text, 0, &e) == GGUF_E_FORMAT &&
               strstr(e.message, rows[i].message),
           "%s", e.message);
    }
}

static void check_nul(void)
{
    static const char text[] = "{\"a\":1\0,\"b\":2}";
    struct gg_json j;
    struct gguf_error e;
    gguf_error_clear(&e);
    ok(gg_json_read(&j, text, sizeof text - 1, 100, 0, &e) == GGUF_E_FORMAT &&
           e.offset == 106 && !j.root,
       "refused at %llu: %s", (unsigned long long)e.offset, e.message);
}

static void check_limits(void)
{
    static char text[2 * GG_JSON_DEPTH + 4];
    struct gg_json j;
    struct gguf_error e;
    memset(text, '[', GG_JSON_DEPTH);
    memset(text + GG_JSON_DEPTH, ']', GG_JSON_DEPTH);
    ok(read_z(&j, text, 0, &e) == GGUF_OK, "%d levels are read",
       GG_JSON_DEPTH);
    gg_json_fini(&j);
    memset(text, '[', GG_JSON_DEPTH + 1);
    memset(text + GG_JSON_DEPTH + 1, ']', GG_JSON_DEPTH + 1);
    gguf_error_clear(&e);
    ok(read_z(&j, text, 0, &e) == GGUF_E_LIMIT &&
           e.offset == 100 + GG_JSON_DEPTH,
       "one more is refused: %s", e.message);

    const size_t n = 2 * (size_t)GG_JSON_VALUES + 3;
    char *many = malloc(n);
    memset(many, '0', n);
    for (size_t i = 0; i < n; i += 2)
        many[i] = ',';
    many[0] = '[';
    many[n - 1] = ']';
    gguf_error_clear(&e);
    ok(gg_json_read(&j, many, n, 0, 0, &e) == GGUF_E_LIMIT,
       "too many values are refused before any is made: %s", e.message);
    free(many);
}

/* Texts that Python's json.dumps writes for float("inf") and 10 ** 30. */
static void check_python(void)
{
    static const char text[] =
        "{\"a\": [0.0, Infinity, -Infinity], \"b\": "
        "1000000000000000019884624838656, \"c\": \"Infinity, NaN\", \"d\": "
        "-9223372036854775807, \"e\": 3.0, \"f\": 0.5}";
    struct gg_json j;
    struct gguf_error e;
    struct gguf_str s;
    int64_t i = -1;
    double x = 0;
    ok(read_z(&j, text, 0, NULL) != GGUF_OK, "it is not JSON");
    gguf_error_clear(&e);
    ok(read_z(&j, text, GG_JSON_PYTHON, &e) == GGUF_OK, "but is read: %s",
       e.message);
    const json_t *a = json_object_get(j.root, "a");
    ok(json_array_size(a) == 3 && json_is_null(json_array_get(a, 1)) &&
           json_is_null(json_array_get(a, 2)),
       "infinities are null");
    ok(gg_json_num(json_object_get(j.root, "b"), &x) && fabs(x - 1e30) < 1e18,
       "an integer beyond 64 bits is a real number: %g", x);
    ok(gg_json_str(json_object_get(j.root, "c"), &s) && s.size == 13 &&
           !memcmp(s.data, "Infinity, NaN", 13),
       "texts stay as they are");
    ok(gg_json_num(json_object_get(j.root, "d"), &x) && x < -9.2e18 &&
           !gg_json_int(json_object_get(j.root, "d"), &i) && i == -1,
       "a long integer is none any more: %g", x);
    ok(gg_json_int(json_object_get(j.root, "e"), &i) && i == 3 &&
           !gg_json_int(json_object_get(j.root, "f"), &i) && i == 3 &&
           !gg_json_int(NULL, &i),
       "a whole number may have a point");
    ok(gg_json_offset_of(&j, json_object_get(j.root, "e")) ==
           100 + (uint64_t)(strstr(text, "3.0") - text),
       "places are those of the text as it was given");
    gg_json_fini(&j);
}

static void check_places(void)
{
    static const char text[] =
        " {\"a{[,\" : [1, {\"b\\\"\":[],\"c\":{}}, \"x,]\", null] ,\n"
        "\"d\":-1.5e3, \"e\":\"\\\\\", \"f\" : true}";
    static const struct {
        const char *name, *is;
    } rows[] = { { "a{[,", "[1" },
                 { "d", "-1.5e3" },
                 { "e", "\"\\\\\"" },
                 { "f", "true" } };
    struct gg_json j;
    json_t *other = json_integer(1);
    ok(read_z(&j, text, 0, NULL) == GGUF_OK, "a text of everything");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t at =
            gg_json_offset_of(&j, json_object_get(j.root, rows[i].name)) - 100;
        ok(at < sizeof text &&
               !strncmp(text + at, rows[i].is, strlen(rows[i].is)),
           "the place of %s", rows[i].name);
    }
    json_t *a = json_object_get(j.root, "a{[,");
    json_t *c = json_object_get(json_array_get(a, 1), "c");
    ok(gg_json_offset_of(&j, c) ==
               100 + (uint64_t)(strstr(text, "{}") - text) &&
           gg_json_offset_of(&j, json_array_get(a, 2)) ==
               100 + (uint64_t)(strstr(text, "\"x,]") - text) &&
           gg_json_offset_of(&j, j.root) == 101,
       "and offsets of nested values");
    ok(gg_json_offset_of(&j, other) == GGUF_NO_OFFSET,
       "a foreign value has no offset");
    json_decref(other);
    gg_json_fini(&j);
    gg_json_fini(&j);
}

/* ---- skipped values, and values read in place ---- */

static const char *const later[] = { "m", "v", "w", NULL };

/* Offset of `what' in text. */
static size_t offset_of(const char *text, const char *what)
{
    return (size_t)(strstr(text, what) - text);
}

static void check_later(void)
{
    static const char text[] =
        "{\"v\":[1],\"m\":{\"x\":[{\"v\":[2]}],\"v\":{\"a]}\":[3,\"}\\\"\"]},"
        "\n\"w\":[[4],5],\"y\":6},\"n\":{\"v\":[7]},\"z\":8}";
    struct gg_json j;
    struct gguf_error e;
    gguf_error_clear(&e);
    ok(gg_json_read_without(&j, text, strlen(text), 100, 0, later, &e) ==
           GGUF_OK,
       "two members of a text are skipped: %s", e.message);
    const json_t *m = json_object_get(j.root, "m");
    const json_t *n = json_object_get(j.root, "n");
    ok(j.n_later == 2 && json_is_object(json_object_get(m, "v")) &&
           !json_object_size(json_object_get(m, "v")) &&
           json_is_array(json_object_get(m, "w")) &&
           !json_array_size(json_object_get(m, "w")),
       "they are empty in the tree");
    ok(json_array_size(json_object_get(j.root, "v")) == 1 &&
           json_array_size(json_object_get(n, "v")) == 1 &&
           json_object_get(json_array_get(json_object_get(m, "x"), 0), "v"),
       "others of their name are not");
    ok(gg_json_offset_of(&j, json_object_get(m, "v")) ==
               100 + offset_of(text, "{\"a]") &&
           gg_json_offset_of(&j, json_object_get(m, "w")) ==
               100 + offset_of(text, "[[4]") &&
           gg_json_offset_of(&j, json_object_get(m, "y")) ==
               100 + offset_of(text, "6}") &&
           gg_json_offset_of(&j, json_object_get(j.root, "z")) ==
               100 + offset_of(text, "8}"),
       "places are those of the whole text");
    gg_json_fini(&j);
}

/* A fault before, between, after or in skipped values: the message gives its
 * byte and line. */
static void check_later_refused(void)
{
    static const struct {
        const char *text, *line;
        unsigned at;
    } rows[] = {
        { "{\"m\":{\"v\":[1,2,3]x}}", "line 1, ", 17 },
        { "{\"m\":{\"v\":[1,\n2,\n3],\n\"w\":[1,2]\n,x}}", "line 5, ", 32 },
        { "{\"m\":{\"v\":[1,2,3],\"v\":[]}}", "line 1, ", 18 },
        { "{\"m\":{\"v\":[1,2,3", "line 1, ", 16 },
        { "{\"m\":{\"v\":[1,2,3}}", "line 1, ", 16 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_json j;
        struct gguf_error e;
        gguf_error_clear(&e);
        ok(gg_json_read_without(&j, rows[i].text, strlen(rows[i].text), 100, 0,
                                later, &e) != GGUF_OK &&
               !j.root && e.offset >= 100 + rows[i].at &&
               e.offset <= 100 + rows[i].at + 4 &&
               strstr(e.message, rows[i].line),
           "refused at %llu: %s", (unsigned long long)e.offset, e.message);
    }
}

/* Scan m.w of text as a list of texts, numbers and lists of them. Returns the
 * number of values; *sum: of the numbers, *bytes: of the texts. */
static int scan_list(const char *text, double *sum, size_t *bytes,
                     struct gguf_error *e)
{
    struct gg_json j;
    struct gg_json_scan s;
    struct gg_mem_arena arena;
    struct gguf_str t;
    double x;
    int n = 0;
    gg_mem_arena_init(&arena, NULL);
    *sum = 0;
    *bytes = 0;
    gguf_error_clear(e);
    if (gg_json_read_without(&j, text, strlen(text), 100, 0, later, e) !=
        GGUF_OK)
        return -1;
    gg_json_scan_open(
        &s, &j, json_object_get(json_object_get(j.root, "m"), "w"), &arena);
    bool more = gg_json_scan_more(&s);
    while (s.depth && !s.lex.what) {
        if (more && gg_json_scan_str(&s, &t)) {
            *bytes += t.size;
            n++;
        } else if (more && gg_json_scan_num(&s, &x)) {
            *sum += x;
            n++;
        } else if (more && !gg_json_scan_enter_list(&s)) {
            break;
        }
        more = gg_json_scan_more(&s);
    }
    const bool failed = gg_json_scan_end(&s, e) != GGUF_OK;
    if (s.depth && !failed)
        e->offset = gg_json_scan_offset(&s);
    gg_json_fini(&j);
    gg_mem_arena_fini(&arena);
    return failed ? -1 : s.depth ? -2 : n;
}

static void check_scan(void)
{
    static const struct {
        const char *list;
        int n; /* number of values; -1: malformed JSON; -2: m.w is not a list */
        double sum;
        unsigned bytes, at; /* bytes of texts; offset of the failure */
    } rows[] = {
        { "[]", 0, 0, 0, 0 },
        { " [ 1 , 2.5 ,\t-3 ] ", 3, 0.5, 0, 0 },
        { "[\"a\",[\"bc\",[]],[\"\xc3\xa9\"]]", 3, 0, 5, 0 },
        { "[\"\\u00e9\\ud83d\\ude00\\n\\\"\"]", 1, 0, 8, 0 },
        { "[\"\\u0000\"]", 1, 0, 1, 0 },
        { "[1e3,0.1,-13.528341293334961,0,-0]", 5, 986.571658706665039, 0, 0 },
        { "[9007199254740993,0.30000000000000004]", 2,
          9007199254740992 + 0.30000000000000004, 0, 0 },
        { "[1,]", -1, 0, 0, 3 },
        { "[,1]", -1, 0, 0, 1 },
        { "[1 2]", -1, 0, 0, 3 },
        { "[01]", -1, 0, 0, 1 },
        { "[-]", -1, 0, 0, 1 },
        { "[1.]", -1, 0, 0, 1 },
        { "[.5]", -2, 0, 0, 1 },
        { "[+1]", -2, 0, 0, 1 },
        { "[1e999]", -1, 0, 0, 1 },
        { "[99999999999999999999]", -1, 0, 0, 1 },
        { "[\"\xff\"]", -1, 0, 0, 2 },
        { "[\"a\xed\xa0\x80\"]", -1, 0, 0, 3 },
        { "[\"a\tb\"]", -1, 0, 0, 3 },
        { "[\"\\u00g9\"]", -1, 0, 0, 1 },
        { "[\"\\u12\"]", -1, 0, 0, 1 },
        { "[\"\\u00E9\\u4e2d\\t\\/\\u0041\\ud83d\\ude00\"]", 1, 0, 12, 0 },
        { "[\"\\ud800\"]", -1, 0, 0, 1 },
        { "[\"\\x\"]", -1, 0, 0, 1 },
        { "[[1},2]", -1, 0, 0, 3 },
        { "[true]", -2, 0, 0, 1 },
        { "[{}]", -2, 0, 0, 1 },
        { "[[[[[[1]]]]]]", -2, 0, 0, 4 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        struct gguf_error e;
        double sum;
        size_t bytes;
        const int at =
            snprintf(text, sizeof text, "{\"m\":{\n\"w\":%s}}", rows[i].list) -
            (int)strlen(rows[i].list) - 2;
        const int n = scan_list(text, &sum, &bytes, &e);
        const uint64_t lo = 100 + (unsigned)at + rows[i].at;
        ok(n == rows[i].n &&
               (n < 0 ? e.offset >= lo && e.offset <= lo + 20 &&
                            (n == -2 || strstr(e.message, "JSON, line 2, "))
                      : sum == rows[i].sum && bytes == rows[i].bytes),
           "%s: %d values, %.17g, %zu bytes, %llu %s", rows[i].list, n, sum,
           bytes, (unsigned long long)e.offset, e.message);
    }
}

/* ---- values for programs ---- */

struct seen {
    char s[200];
    int stop; /* values after which the walk is stopped */
};

static enum gguf_status note_value(void *user, const struct gguf_json_value *v,
                                   struct gguf_error *err)
{
    struct seen *x = user;
    const size_t n = strlen(x->s);
    (void)err;
    snprintf(x->s + n, sizeof x->s - n, "%.*s%d%.*s %g;", (int)v->name.size,
             v->name.data ? v->name.data : "", (int)v->kind,
             (int)v->string.size, v->string.data ? v->string.data : "",
             v->real);
    return --x->stop ? GGUF_OK : GGUF_E_CANCELLED;
}

static void check_walk(void)
{
    struct seen x = { .stop = -1 };
    struct gguf_error e;
    gguf_error_clear(&e);
    enum gguf_status st = gguf_json_walk(
        GG_STR("{\"a\":[null,true,1.5],\"b\":{\"c\":\"d\"},"
               "\"e\":1234567890123456789012,\"f\":false,\"g\":-3}"),
        (struct gguf_json_callback){ note_value, &x }, &e);
    ok(st == GGUF_OK && !strcmp(x.s, "7 0;a6 0;0 0;2 0;4 1.5;8 0;b7 0;c5d 0;"
                                     "8 0;e4 1.23457e+21;f1 0;g3 -3;8 0;"),
       "values in the order of the text: %s%s", x.s, e.message);
    x = (struct seen){ .stop = 2 };
    st = gguf_json_walk(GG_STR("[1,2,3]"),
                        (struct gguf_json_callback){ note_value, &x }, &e);
    ok(st == GGUF_E_CANCELLED && !strcmp(x.s, "6 0;3 1;"), "a walk is ended");
    x = (struct seen){ .stop = -1 };
    gguf_error_clear(&e);
    st = gguf_json_walk(GG_STR("[1,2,]"),
                        (struct gguf_json_callback){ note_value, &x }, &e);
    ok(st == GGUF_E_FORMAT && e.offset == 5 && !x.s[0],
       "malformed JSON gives no call: %s", e.message);
}

int main(void)
{
    check_walk();
    check_refused();
    check_messages();
    check_nul();
    check_limits();
    check_python();
    check_places();
    check_later();
    check_later_refused();
    check_scan();
    return done_testing();
}
