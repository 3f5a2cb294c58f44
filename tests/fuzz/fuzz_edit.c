/* SPDX-License-Identifier: MIT */
/* fuzz_edit.c - a file edited in place or by copy opens, with the requested
 * metadata and the same tensor data
 *
 * The last byte of the input chooses the changes, a sum of these.
 */
#include "config.h"
#include "gguf/edit.h"
#include "gguf/writer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum how {
    IN_PLACE = 1,
    SET = 2,    /* a text whose length is the sum */
    REMOVE = 4, /* the first pair */
    SWAP = 8,   /* swap the byte order, and swap it back */
    ALIGN = 16  /* align to 64 bytes */
};

static void compare_files(const struct gguf_file *a, const char *path,
                          const struct gguf_meta *m)
{
    struct gguf_file *b;
    MUST(gguf_file_open(&b, path, NULL, NULL) == GGUF_OK);
    MUST(gguf_file_n_tensors(a) == gguf_file_n_tensors(b));
    for (size_t i = 0; i < gguf_file_n_tensors(a); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(a, i);
        const struct gguf_tensor_info *u = gguf_file_tensor(b, i);
        MUST(t->size <= u->size && t->dtype == u->dtype);
        MUST(!memcmp(gguf_file_tensor_data(a, i), gguf_file_tensor_data(b, i),
                     t->size));
    }
    size_t n = gguf_file_n_kv(b);
    n -= gguf_file_kv_find(b, GGUF_EDIT_PADDING_KEY) != NULL;
    MUST(n == gguf_meta_n_kv(m) -
                  (gguf_meta_find(m, GGUF_EDIT_PADDING_KEY) != NULL));
    for (size_t i = 0; i < n; i++) {
        const struct gguf_kv *x = gguf_file_kv(b, i);
        MUST(x->size == 0 || x->data);
    }
    gguf_file_close(b);
}

/* Make the changes in m. */
static void change_meta(struct gguf_meta *m, const struct gguf_file *f,
                        unsigned how)
{
    char text[257];
    memset(text, 'x', sizeof text);
    text[how] = '\0';
    MUST(gguf_meta_copy_file(m, f, NULL) == GGUF_OK);
    if (how & SET)
        MUST(gguf_meta_set_strz(m, "edited", text, NULL) == GGUF_OK);
    if (how & REMOVE && gguf_meta_n_kv(m) > 0) {
        struct gguf_str k = gguf_meta_kv(m, 0)->key;
        char *key = calloc(k.size + 1, 1);
        MUST(key);
        memcpy(key, k.data, k.size);
        MUST(gguf_meta_remove(m, key) == 1);
        free(key);
    }
    if (how & ALIGN)
        MUST(gguf_meta_set_u32(m, "general.alignment", 64, NULL) == GGUF_OK);
}

/* Swap the file back to its old byte order. */
static void swap_back(const char *path, const struct gguf_meta *m,
                      struct gguf_edit_params *p)
{
    struct gguf_file *f;
    MUST(gguf_file_open(&f, path, NULL, NULL) == GGUF_OK);
    p->byte_order = gguf_file_is_big_endian(f) ? GGUF_EDIT_LITTLE_ENDIAN
                                               : GGUF_EDIT_BIG_ENDIAN;
    MUST(gguf_edit_apply(f, m, p, NULL, NULL) == GGUF_OK);
    gguf_file_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_file *was, *f = NULL;
    struct gguf_meta *m = NULL;
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    if (size == 0 ||
        gguf_file_open_memory(&was, data, size, NULL, NULL) != GGUF_OK)
        return 0;
    unsigned how = data[size - 1];
    const char *path = scratch_path("edit.gguf");
    scratch_write(path, data, size);
    p.no_sync = true;
    p.mode = how & IN_PLACE ? GGUF_EDIT_IN_PLACE : GGUF_EDIT_COPY;
    if (how & SWAP) {
        p.mode = GGUF_EDIT_COPY;
        p.byte_order = gguf_file_is_big_endian(was) ? GGUF_EDIT_LITTLE_ENDIAN
                                                    : GGUF_EDIT_BIG_ENDIAN;
    }
    MUST(gguf_file_open(&f, path, NULL, NULL) == GGUF_OK);
    MUST(gguf_meta_create(&m, NULL, NULL) == GGUF_OK);
    change_meta(m, f, how);
    enum gguf_status st = gguf_edit_apply(f, m, &p, NULL, &err);
    gguf_file_close(f);
    MUST(st == GGUF_OK ||
         (st == GGUF_E_NOSPACE && p.mode == GGUF_EDIT_IN_PLACE) ||
         (st == GGUF_E_UNSUPPORTED && how & SWAP) ||
         (st == GGUF_E_LIMIT &&
          gguf_file_alignment(was) > GGUF_WRITER_MAX_ALIGNMENT));
    if (st == GGUF_OK && how & SWAP)
        swap_back(path, m, &p);
    if (st == GGUF_OK)
        compare_files(was, path, m);
    gguf_meta_destroy(m);
    gguf_file_close(was);
    scratch_clean();
    return 0;
}

void fuzz_make_seeds(void)
{
    for (uint8_t how = 0; how < 32; how = (uint8_t)(how + 3))
        seed_files("", 0, &how, 1);
}
