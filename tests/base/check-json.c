/* check-json.c - JSON from strangers: what is read, what is refused and where
 */
#include "config.h"
#include "base/json.h"
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
        unsigned at, slack; /* byte; Jansson may notice up to so much later */
    } rows[] = {
        { "", GGUF_E_FORMAT, 0, 0 },
        { "{\"a\":1,\"b\":2,\"a\":3}", GGUF_E_DUPLICATE, 13, 3 },
        { "{\"a\":\"\xff\"}", GGUF_E_FORMAT, 6, 1 },
        { "{\"a\":\"\xc0\x80\"}", GGUF_E_FORMAT, 6, 1 },
        { "{\"a\":\"\\ud800\"}", GGUF_E_FORMAT, 5, 8 },
        { "{\"a\\u0000\":1}", GGUF_E_FORMAT, 1, 9 },
        { "{\"a\":123456789012345678901}", GGUF_E_FORMAT, 5, 21 },
        { "{\"a\":1e999}", GGUF_E_FORMAT, 5, 5 },
        { "{\"a\":NaN}", GGUF_E_FORMAT, 5, 3 },
        { "{\"a\":Infinity}", GGUF_E_FORMAT, 5, 8 },
        { "{\"a\":01}", GGUF_E_FORMAT, 5, 2 },
        { "{\"a\":1,}", GGUF_E_FORMAT, 7, 1 },
        { "{\"a\":1} x", GGUF_E_FORMAT, 8, 1 },
        { "{\"a\":[1,2}", GGUF_E_FORMAT, 9, 1 },
        { "{\"a\":\"x", GGUF_E_FORMAT, 5, 2 },
        { "{\"a\\", GGUF_E_FORMAT, 1, 3 },
        { "3", GGUF_E_FORMAT, 0, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_json j;
        struct gguf_error e;
        gguf_error_clear(&e);
        enum gguf_status st = read_z(&j, rows[i].text, 0, &e);
        ok(st == rows[i].status && e.offset >= 100 + rows[i].at &&
               e.offset <= 100 + rows[i].at + rows[i].slack && !j.root,
           "refused at %llu: %s", (unsigned long long)e.offset, e.message);
    }
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

/* What Python's json.dumps writes of float("inf") and 10 ** 30. */
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
    ok(gg_json_place(&j, json_object_get(j.root, "e")) ==
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
            gg_json_place(&j, json_object_get(j.root, rows[i].name)) - 100;
        ok(at < sizeof text &&
               !strncmp(text + at, rows[i].is, strlen(rows[i].is)),
           "the place of %s", rows[i].name);
    }
    json_t *a = json_object_get(j.root, "a{[,");
    json_t *c = json_object_get(json_array_get(a, 1), "c");
    ok(gg_json_place(&j, c) == 100 + (uint64_t)(strstr(text, "{}") - text) &&
           gg_json_place(&j, json_array_get(a, 2)) ==
               100 + (uint64_t)(strstr(text, "\"x,]") - text) &&
           gg_json_place(&j, j.root) == 101,
       "and of what is deeper");
    ok(gg_json_place(&j, other) == GGUF_NO_OFFSET,
       "what is not of it has none");
    json_decref(other);
    gg_json_fini(&j);
    gg_json_fini(&j);
}

int main(void)
{
    check_refused();
    check_limits();
    check_python();
    check_places();
    return done_testing();
}
