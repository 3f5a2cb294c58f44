/* SPDX-License-Identifier: MIT */
/* fuzz_json.c - JSON: read as a tree, scanned in place, and read by Jansson */
#include "config.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Jansson's reader must make the same tree or refuse the text, too.
 * Exceptions: a NUL after a number, which it drops, and long numbers, which it
 * reads. */
static void compare_jansson(const struct gg_json *j, const uint8_t *data,
                            size_t size)
{
    json_error_t e;
    if (size > 500 || memchr(data, 0, size))
        return;
    json_t *theirs = json_loadb((const char *)data, size,
                                JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    MUST(!theirs == !j->root);
    MUST(!theirs || json_equal(theirs, j->root));
    json_decref(theirs);
}

static void read_tree(const uint8_t *data, size_t size, unsigned flags)
{
    struct gg_json j;
    struct gguf_error err;
    gguf_error_clear(&err);
    if (gg_json_read(&j, (const char *)data, size, 0, flags, &err) !=
        GGUF_OK) {
        MUST(!j.root && err.message[0] && err.offset <= size);
        if (!(flags & GG_JSON_PYTHON) && err.status != GGUF_E_LIMIT)
            compare_jansson(&j, data, size);
        return;
    }
    if (!(flags & GG_JSON_PYTHON))
        compare_jansson(&j, data, size);
    const json_t *v = j.root; /* the first member of the first member ... */
    while (json_array_size(v))
        v = json_array_get(v, json_array_size(v) - 1);
    MUST(gg_json_offset_of(&j, v) < size);
    gg_json_fini(&j);
}

/* ---- read where it lies, and as a tree ---- */

static bool scan_value(struct gg_json_scan *s, const json_t *v);

static bool scan_items(struct gg_json_scan *s, const json_t *v)
{
    const bool object = json_is_object(v);
    size_t n = 0;
    for (; gg_json_scan_more(s); n++) {
        struct gguf_str name;
        if (!object) {
            if (!scan_value(s, v ? json_array_get(v, n) : NULL))
                return false;
            continue;
        }
        if (!gg_json_scan_name(s, &name))
            return false;
        const char *z = gg_mem_arena_strndup(s->arena, name.data, name.size);
        const json_t *e = json_object_get(v, z);
        MUST(z && e);
        if (!scan_value(s, e))
            return false;
    }
    MUST(!v || s->lex.what ||
         n == (object ? json_object_size(v) : json_array_size(v)));
    return !s->lex.what;
}

/* Scan the next value. It must equal v, unless v is NULL. false: the scanner
 * does not read it. */
static bool scan_value(struct gg_json_scan *s, const json_t *v)
{
    struct gguf_str text, same;
    double x;
    if (gg_json_scan_enter_list(s)) {
        MUST(!v || json_is_array(v));
        return scan_items(s, v);
    }
    if (gg_json_scan_str(s, &text)) {
        MUST(!v || (gg_json_str(v, &same) && gg_str_eq(text, same)));
        return true;
    }
    if (!gg_json_scan_num(s, &x))
        return false;
    MUST(!v || (json_is_number(v) && x == json_number_value(v)));
    return true;
}

static size_t pass_blanks(const uint8_t *data, size_t size, size_t at)
{
    while (at < size && data[at] && strchr(" \t\r\n", data[at]))
        at++;
    return at;
}

/* A list or object must equal its tree. A list is refused if its tree is
 * refused. */
static void try_scan(const uint8_t *data, size_t size)
{
    struct gg_json j;
    struct gg_json_scan s;
    struct gg_mem_arena arena;
    struct gguf_error err;
    const size_t begin = pass_blanks(data, size, 0);
    gguf_error_clear(&err);
    const bool read =
        gg_json_read(&j, (const char *)data, size, 0, 0, &err) == GGUF_OK;
    if (!read && (begin == size || data[begin] != '['))
        return;
    json_t *any = read ? NULL : json_array();
    struct gg_json outside = j;
    outside.root = read ? j.root : any;
    MUST(outside.root);
    gg_mem_arena_init(&arena, NULL);
    gg_json_scan_open(&s, &outside, outside.root, &arena);
    const bool whole = scan_items(&s, j.root);
    const enum gguf_status st = gg_json_scan_end(&s, &err);
    MUST(!read || st == GGUF_OK);
    MUST(st == GGUF_OK || (err.message[0] && err.offset <= size));
    MUST(read || !whole || pass_blanks(data, size, s.lex.at) < size);
    json_decref(any);
    gg_json_fini(&j);
    gg_mem_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_tree(data, size, 0);
    read_tree(data, size, GG_JSON_PYTHON);
    try_scan(data, size);
    return 0;
}

void fuzz_make_seeds(void)
{
    static const char nul[] = "{\"a\":1\0,\"b\":0}";
    seed_text("{\"a\":[1,-2.5e3,\"x\\u00e9\",null,{\"b\":[]}],\"c\":"
              "1000000000000000019884624838656}");
    seed_text("[Infinity,[-Infinity,[true,[\"\\\\\"]]]]");
    seed_text("[\"a\",[\"b\\u00e9\\ud83d\\ude00\",\"\xc3\xa9\"],-1.5,0,"
              "13.528341293334961,1e-3,[[]],\"\\\\\"]");
    seed_text("{\"a\":0,\"b\\\"\":1,\"\xe4\xb8\xad\":[\"x\",-0.25]}");
    seed_text("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
    seed_text(
        "[1e5,-0,-0.0,1E-400,9223372036854775807,-9223372036854775808,"
        "1.7976931348623157e308,\"\\ud83d\\ude00\\u0000\\/\",{\"\":false}]");
    seed_text("{\"a\":1e999,\"a\":123456789012345678901,\"\xff\":-0}");
    fix_bytes(new_seed(), nul, sizeof nul - 1);
}
