/* SPDX-License-Identifier: MIT */
/* check-kv.c - typed metadata: getters, arrays, and the list for writing */
#include "config.h"
#include "file/value.h"
#include "gguf/file.h"
#include "gguf/meta.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/tap.h"

#include <inttypes.h>

static struct gguf_file *open_good(const char *name, struct fix *fx)
{
    struct gguf_file *f = NULL;
    struct gguf_error err;
    fix_init(fx);
    for (const struct fixture *x = fix_list("good"); x->name; x++)
        if (!strcmp(x->name, name)) {
            fix_make(x, fx);
            if (gguf_file_open_memory(&f, fx->data, fx->size, NULL, &err))
                printf("# %s\n", err.message);
        }
    return f;
}

static int str_is(struct gguf_str s, const char *z)
{
    return s.size == strlen(z) && !memcmp(s.data, z, s.size);
}

/* ------------------------------------------------------------- scalars --- */

static void check_exact(const struct gguf_file *f, const char *order)
{
    uint8_t u8;
    int8_t i8;
    uint16_t u16;
    int16_t i16;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    float f32;
    double f64;
    bool b;
    struct gguf_str s;
#define GET(NAME, VALUE)                                                      \
    ok(gguf_kv_get_##NAME(gguf_file_kv_find(f, #NAME), &NAME, NULL) ==        \
               GGUF_OK &&                                                     \
           NAME == (VALUE),                                                   \
       #NAME ", %s", order)
    GET(u8, 255);
    GET(i8, -128);
    GET(u16, 65535);
    GET(i16, -32768);
    GET(u32, UINT32_MAX);
    GET(i32, INT32_MIN);
    GET(u64, UINT64_MAX);
    GET(i64, INT64_MIN);
    GET(f32, 1.5f);
    GET(f64, 1.5);
#undef GET
    ok(gguf_kv_get_bool(gguf_file_kv_find(f, "bool"), &b, NULL) == GGUF_OK &&
           b == 1,
       "bool, %s", order);
    ok(gguf_kv_get_str(gguf_file_kv_find(f, "str"), &s, NULL) == GGUF_OK &&
           str_is(s, "text"),
       "str, %s", order);
}

static void check_lenient(const struct gguf_file *f)
{
    struct gguf_error err;
    uint64_t u = 77;
    int64_t i = 77;
    double d = 77;
    ok(gguf_kv_get_uint(gguf_file_kv_find(f, "u8"), &u, NULL) == GGUF_OK &&
           u == 255,
       "a u8 is an unsigned integer");
    ok(gguf_kv_get_uint(gguf_file_kv_find(f, "i16"), &u, &err) ==
               GGUF_E_OVERFLOW &&
           u == 255 && strstr(err.message, "-32768"),
       "a negative one is not: %s", err.message);
    ok(gguf_kv_get_uint(gguf_file_kv_find(f, "f32"), &u, &err) == GGUF_E_TYPE,
       "nor is a float: %s", err.message);
    ok(gguf_kv_get_uint(gguf_file_kv_find(f, "bool"), &u, &err) == GGUF_E_TYPE,
       "nor is a bool: %s", err.message);
    ok(gguf_kv_get_int(gguf_file_kv_find(f, "i8"), &i, NULL) == GGUF_OK &&
           i == -128,
       "an i8 is an integer");
    ok(gguf_kv_get_int(gguf_file_kv_find(f, "u64"), &i, &err) ==
               GGUF_E_OVERFLOW &&
           i == -128,
       "2^64-1 is too large for one: %s", err.message);
    ok(gguf_kv_get_float(gguf_file_kv_find(f, "i64"), &d, NULL) == GGUF_OK &&
           d == -0x1p63,
       "a number of any type");
    ok(gguf_kv_get_float(gguf_file_kv_find(f, "f32"), &d, NULL) == GGUF_OK &&
           d == 1.5,
       "a float as double");
    ok(gguf_kv_get_float(gguf_file_kv_find(f, "str"), &d, &err) == GGUF_E_TYPE,
       "a text is not a number: %s", err.message);
    uint32_t u32 = 77;
    ok(gguf_kv_get_u32(gguf_file_kv_find(f, "i32"), &u32, &err) ==
               GGUF_E_TYPE &&
           u32 == 77 && err.offset != GGUF_NO_OFFSET,
       "exact getters are: %s", err.message);
    ok(gguf_kv_get_u32(gguf_file_kv_find(f, "none"), &u32, &err) ==
           GGUF_E_NOTFOUND,
       "NULL is not found");
    const struct gguf_kv *kv;
    ok(gguf_file_kv_get(f, "n\none", &kv, &err) == GGUF_E_NOTFOUND && !kv &&
           !strcmp(err.message, "no key 'n\\none'"),
       "a missing key is named: %s", err.message);
}

/* -------------------------------------------------------------- arrays --- */

static void check_arrays(const struct gguf_file *f, const char *order)
{
    struct gguf_error err;
    int32_t i32[3];
    float f32[2];
    uint64_t u64[2];
    struct gguf_kv e;
    struct gguf_str s;
    struct gguf_kv_iter it;
    const struct gguf_kv *kv = gguf_file_kv_find(f, "i16s");
    ok(kv->n == 3 && kv->elem_type == GGUF_VAL_I16 && kv->size == 6,
       "an array, %s", order);
    ok(gguf_kv_get_elems_i32(kv, 0, 3, i32, &err) == GGUF_OK && i32[0] == 1 &&
           i32[1] == -1 && i32[2] == 300,
       "its elements");
    ok(gguf_kv_get_elems_i32(kv, 2, 1, i32, &err) == GGUF_OK && i32[0] == 300,
       "its last element");
    ok(gguf_kv_get_elems_i32(kv, 2, 2, i32, &err) == GGUF_E_INVALID,
       "not one more: %s", err.message);
    ok(gguf_kv_get_elems_i32(kv, UINT64_MAX, 2, i32, &err) == GGUF_E_INVALID,
       "nor far out: %s", err.message);
    ok(gguf_kv_get_elems_uint(kv, 0, 2, u64, &err) == GGUF_E_OVERFLOW &&
           strstr(err.message, "[1] is -1"),
       "a negative element: %s", err.message);
    ok(gguf_kv_get_elems_f32(kv, 0, 2, f32, &err) == GGUF_E_TYPE,
       "integers are not floats: %s", err.message);
    int16_t i16;
    ok(gguf_kv_get_elem(kv, 1, &e, &err) == GGUF_OK && e.index == 1 &&
           gguf_kv_get_i16(&e, &i16, &err) == GGUF_OK && i16 == -1 &&
           e.off == kv->off + 14,
       "one element");
    ok(gguf_kv_get_elem(kv, 3, &e, &err) == GGUF_E_INVALID, "one too far: %s",
       err.message);
    ok(gguf_kv_get_elems_f32(gguf_file_kv_find(f, "f32s"), 0, 2, f32, &err) ==
               GGUF_OK &&
           f32[0] == 0.25f && f32[1] == -2,
       "floats, %s", order);
    ok(gguf_kv_get_elems_uint(gguf_file_kv_find(f, "bools"), 0, 2, u64,
                              &err) == GGUF_OK &&
           u64[0] == 1 && u64[1] == 0,
       "bools, %s", order);

    kv = gguf_file_kv_find(f, "strs");
    gguf_kv_iter_init(&it, kv);
    ok(gguf_kv_iter_next_str(&it, &s) && str_is(s, "one") &&
           gguf_kv_iter_next_str(&it, &s) && str_is(s, "") &&
           gguf_kv_iter_next_str(&it, &s) && str_is(s, "three") &&
           !gguf_kv_iter_next_str(&it, &s),
       "strings one by one, %s", order);
    ok(gguf_kv_get_elem(kv, 2, &e, &err) == GGUF_OK &&
           gguf_kv_get_str(&e, &s, &err) == GGUF_OK && str_is(s, "three"),
       "the third string");
    ok(gguf_kv_check_array(kv, GGUF_VAL_STR, &err) == GGUF_OK &&
           gguf_kv_check_array(kv, GGUF_VAL_I8, &err) == GGUF_E_TYPE,
       "elements of a type: %s", err.message);
    gguf_kv_iter_init(&it, gguf_file_kv_find(f, "none"));
    ok(!gguf_kv_iter_next(&it, &e) && !gguf_kv_iter_next_str(&it, &s),
       "an empty array has no elements");
    gguf_kv_iter_init(&it, NULL);
    ok(!gguf_kv_iter_next(&it, &e), "nor has NULL");
}

static void check_nested(const struct gguf_file *f, const char *order)
{
    struct gguf_kv_iter it, in;
    struct gguf_kv e, e2;
    struct gguf_str s;
    uint8_t u8[2] = { 0 };
    uint32_t after = 0;
    gguf_kv_iter_init(&it, gguf_file_kv_find(f, "nest"));
    ok(gguf_kv_iter_next(&it, &e) && e.type == GGUF_VAL_ARR && e.n == 2 &&
           e.elem_type == GGUF_VAL_U8,
       "first inner array, %s", order);
    gguf_kv_iter_init(&in, &e);
    for (int i = 0; gguf_kv_iter_next(&in, &e2); i++)
        if (gguf_kv_get_u8(&e2, &u8[i & 1], NULL) != GGUF_OK)
            u8[0] = 0;
    ok(u8[0] == 1 && u8[1] == 2, "its elements");
    ok(gguf_kv_iter_next(&it, &e) && e.n == 0 && e.elem_type == GGUF_VAL_F64,
       "second inner array");
    ok(gguf_kv_iter_next(&it, &e) && e.n == 1 && e.elem_type == GGUF_VAL_ARR &&
           !gguf_kv_iter_next(&it, &e2),
       "third and last");
    ok(gguf_kv_get_elem(&e, 0, &e2, NULL) == GGUF_OK && e2.n == 2 &&
           gguf_kv_get_elem(&e2, 1, &e, NULL) == GGUF_OK &&
           gguf_kv_get_str(&e, &s, NULL) == GGUF_OK && str_is(s, "deep"),
       "two levels down");
    ok(gguf_kv_get_u32(gguf_file_kv_find(f, "after"), &after, NULL) ==
               GGUF_OK &&
           after == 7,
       "and the key after it");
}

/* ---------------------------------------------------------------- list --- */

static int order_is(const struct gguf_meta *m, const char *keys)
{
    char all[256] = "";
    for (size_t i = 0; i < gguf_meta_n_kv(m); i++) {
        struct gguf_str k = gguf_meta_kv(m, i)->key;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%.*s",
                 i ? " " : "", (int)k.size, k.data);
    }
    return !strcmp(all, keys);
}

static void check_list(void)
{
    static const struct gguf_str strs[] = { { "x", 1 }, { "", 0 } };
    static const uint8_t bools[] = { 1, 2 };
    struct gguf_error err;
    struct gguf_meta *m;
    if (gguf_meta_create(&m, NULL, &err) != GGUF_OK)
        return;
    ok(gguf_meta_set_u32(m, "a", 1, &err) == GGUF_OK &&
           gguf_meta_set_strz(m, "b", "text", &err) == GGUF_OK &&
           gguf_meta_set_str_array(m, "c", strs, 2, &err) == GGUF_OK &&
           gguf_meta_set_u32(m, "a", 2, &err) == GGUF_OK &&
           order_is(m, "a b c"),
       "replacing keeps the place");
    uint32_t v = 0;
    ok(gguf_kv_get_u32(gguf_meta_find(m, "a"), &v, NULL) == GGUF_OK && v == 2,
       "and changes the value");
    ok(gguf_meta_set_kv(m, "d", gguf_meta_find(m, "c"), &err) == GGUF_OK &&
           gguf_meta_rename(m, "b", "bb", &err) == GGUF_OK &&
           order_is(m, "a bb c d") && !gguf_meta_find(m, "b") &&
           gguf_meta_find(m, "bb") == gguf_meta_kv(m, 1),
       "copy and rename");
    ok(gguf_meta_rename(m, "bb", "c", &err) == GGUF_E_DUPLICATE &&
           gguf_meta_rename(m, "zz", "q", &err) == GGUF_E_NOTFOUND,
       "a name that is taken: %s", err.message);
    ok(gguf_meta_remove(m, "a") == 1 && gguf_meta_remove(m, "a") == 0 &&
           order_is(m, "bb c d") &&
           gguf_meta_find(m, "d") == gguf_meta_kv(m, 2),
       "remove");
    ok(gguf_meta_set_u8(m, "", 1, &err) == GGUF_E_INVALID &&
           gguf_meta_set_u8(m, "a\tb", 1, &err) == GGUF_E_INVALID &&
           gguf_meta_set_u8(m, "\xff", 1, &err) == GGUF_E_INVALID,
       "bad keys: %s", err.message);
    ok(gguf_meta_set_array(m, "e", GGUF_VAL_BOOL, bools, 2, &err) ==
               GGUF_E_INVALID &&
           gguf_meta_set_array(m, "e", GGUF_VAL_STR, bools, 2, &err) ==
               GGUF_E_INVALID,
       "bad arrays: %s", err.message);
    ok(gguf_meta_set_encoded(m, "e", GGUF_VAL_U32, bools, 2, &err) ==
               GGUF_E_TRUNCATED &&
           gguf_meta_set_encoded(m, "e", GGUF_VAL_U8, bools, 2, &err) ==
               GGUF_E_FORMAT &&
           gguf_meta_set_encoded(m, "e", 13, bools, 2, &err) ==
               GGUF_E_FORMAT &&
           order_is(m, "bb c d"),
       "bad encodings: %s", err.message);
    gguf_meta_destroy(m);
}

/* Compare values after changing a bit of the last byte; or of any byte, if
 * every byte is part of a number. Returns the number of changes that were
 * missed. */
static unsigned same_but_for_a_bit(const struct gguf_kv *a,
                                   const struct gguf_kv *b)
{
    unsigned same = 0;
    int numbers = gguf_val_type_size(a->elem_type) > 0;
    uint8_t *p = malloc(a->size + 1);
    for (size_t i = 0; i < a->size; i++) {
        struct gguf_kv c = *a;
        if (!numbers && i + 1 < a->size)
            continue;
        memcpy(p, a->data, a->size);
        p[i] ^= 1;
        c.data = p;
        same += gguf_kv_equal(&c, b) != 0;
    }
    free(p);
    return same;
}

static void check_equal(const struct gguf_file *f, const struct gguf_file *g,
                        const char *name)
{
    unsigned equal = 0, wrong = 0;
    for (size_t i = 0; i < gguf_file_n_kv(g); i++)
        for (size_t k = 0; k < gguf_file_n_kv(g); k++) {
            const struct gguf_kv *a = gguf_file_kv(f, i);
            const struct gguf_kv *b = gguf_file_kv(g, k);
            equal += i == k && gguf_kv_equal(a, b) && gguf_kv_equal(b, a);
            wrong += i == k && same_but_for_a_bit(a, b);
            wrong += a->type != b->type && gguf_kv_equal(a, b);
        }
    ok(equal && equal == gguf_file_n_kv(g) && !wrong,
       "%s: equal in both byte orders", name);
    ok(gguf_kv_equal(NULL, NULL) && !gguf_kv_equal(gguf_file_kv(f, 0), NULL) &&
           !gguf_kv_equal(NULL, gguf_file_kv(f, 0)),
       "nothing is nothing");
}

/* Everything in a big-endian file reads the same from a copy. */
static void check_copy(const char *name,
                       void check(const struct gguf_file *, const char *))
{
    struct fix be, le;
    struct gguf_meta *m = NULL;
    struct gguf_error err;
    char name_be[64];
    snprintf(name_be, sizeof name_be, "%s-be", name);
    struct gguf_file *f = open_good(name_be, &be), *g = open_good(name, &le);
    unsigned equal = 0;
    ok(f && gguf_file_is_big_endian(f), "%s is big-endian", name_be);
    if (f && g && gguf_meta_create(&m, NULL, &err) == GGUF_OK &&
        gguf_meta_copy_file(m, f, &err) == GGUF_OK)
        for (size_t i = 0; i < gguf_file_n_kv(g); i++) {
            const struct gguf_kv *a = gguf_meta_kv(m, i);
            const struct gguf_kv *b = gguf_file_kv(g, i);
            equal +=
                a && a->size == b->size && !memcmp(a->data, b->data, a->size);
        }
    ok(equal && equal == gguf_file_n_kv(g), "%s copied is little-endian",
       name_be);
    if (f && g)
        check_equal(f, g, name);
    if (f)
        check(f, "big-endian");
    gguf_meta_destroy(m);
    gguf_file_close(f);
    gguf_file_close(g);
    fix_fini(&be);
    fix_fini(&le);
}

static enum gguf_status build_file(const struct gguf_allocator *a)
{
    struct gguf_meta *m;
    struct gguf_error err;
    char key[16];
    static const struct gguf_str strs[] = { { "x", 1 } };
    enum gguf_status st = gguf_meta_create(&m, a, &err);
    for (int i = 0; st == GGUF_OK && i < 40; i++) {
        snprintf(key, sizeof key, "k%d", i);
        st = gguf_meta_set_u32(m, key, 1, &err);
    }
    if (st == GGUF_OK)
        st = gguf_meta_set_str_array(m, "s", strs, 1, &err);
    if (st == GGUF_OK)
        st = gguf_meta_rename(m, "s", "t", &err);
    if (st == GGUF_OK &&
        (!gguf_meta_remove(m, "k7") || gguf_meta_n_kv(m) != 40))
        st = GGUF_E_INVALID;
    gguf_meta_destroy(m);
    return st;
}

static void check_nomem(void)
{
    struct failalloc fa;
    unsigned n = 0, bad = 0;
    for (;; n++) {
        enum gguf_status st = build_file(failalloc_init(&fa, n));
        bad += fa.live != 0;
        if (fa.calls <= n) {
            bad += st != GGUF_OK;
            break;
        }
        bad += st != GGUF_E_NOMEM;
    }
    ok(bad == 0 && n > 40, "memory may run out at each of %u calls", n);
}

/* Copying a big-endian value swaps its bytes. The file may have changed since
 * its lengths were checked, so they may have any value. */
static void check_turned(void)
{
    enum { SIZE = 12 + 8 + 3 };
    unsigned bad = 0;
    for (unsigned elem = 0; elem <= GGUF_N_VAL_TYPES; elem++)
        for (int flat = 0; flat < 2; flat++) {
            uint8_t *b = malloc(SIZE + 16);
            memset(b, 0xff, SIZE + 16);
            b[0] = b[1] = b[2] = 0;
            b[3] = (uint8_t)elem;
            gg_value_payload_swap(b, SIZE, GGUF_VAL_ARR,
                                  flat ? GGUF_VAL_STR : GGUF_VAL_ARR,
                                  UINT64_MAX, true);
            for (int i = 0; i < 16; i++)
                bad += b[SIZE + i] != 0xff;
            free(b);
        }
    ok(!bad, "lengths that are not true stay inside a value");
}

int main(void)
{
    struct fix fx;
    check_turned();
    struct gguf_file *f = open_good("good-scalars", &fx);
    check_exact(f, "little-endian");
    check_lenient(f);
    gguf_file_close(f);
    fix_fini(&fx);
    f = open_good("good-arrays", &fx);
    check_arrays(f, "little-endian");
    gguf_file_close(f);
    fix_fini(&fx);
    f = open_good("good-nested", &fx);
    check_nested(f, "little-endian");
    gguf_file_close(f);
    fix_fini(&fx);
    check_copy("good-scalars", check_exact);
    check_copy("good-arrays", check_arrays);
    check_copy("good-nested", check_nested);
    check_list();
    check_nomem();
    enum gguf_val_type a, b, c = GGUF_VAL_ARR;
    ok(gguf_val_type_find("U32", &a) && a == GGUF_VAL_U32 &&
           gguf_val_type_find("string", &b) && b == GGUF_VAL_STR &&
           !gguf_val_type_find("u33", &c) && c == GGUF_VAL_ARR &&
           !strcmp(gguf_val_type_name(99), "?"),
       "names of types");
    return done_testing();
}
