/* SPDX-License-Identifier: MIT */
/* edited.c - a small model whose metadata is edited */
#include "config.h"
#include "tests/file/edited.h"
#include "gguf/file.h"
#include "tests/fix.h"
#include "tests/scratch.h"
#include "tests/slurp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char folder[18] = "check-edit-XXXXXX";
char model_path[64], other_path[64], journal_path[80], link_path[64];

int edited_begin(void)
{
    if (!scratch_make(folder))
        return 0;
    snprintf(model_path, sizeof model_path, "%s/model.gguf", folder);
    snprintf(other_path, sizeof other_path, "%s/other.gguf", folder);
    snprintf(journal_path, sizeof journal_path, "%s.edit-journal", model_path);
    snprintf(link_path, sizeof link_path, "%s/link.gguf", folder);
    return symlink("model.gguf", link_path) == 0;
}

int edited_end(void)
{
    return scratch_remove(folder);
}

int exists(const char *name)
{
    return access(name, F_OK) == 0;
}

void write_model(size_t n, size_t data)
{
    struct fix fx;
    fix_init(&fx);
    fix_head(&fx, 3, 2, 2);
    fix_kv_str(&fx, "general.architecture", "llama");
    fix_key(&fx, "text", GGUF_VAL_STR);
    fix_u64(&fx, n);
    fix_fill(&fx, 'a', n);
    fix_info(&fx, "t0", FIX_NE(8), GGUF_DTYPE_F32, 0);
    fix_info(&fx, "t1", FIX_NE(data), GGUF_DTYPE_I8, 32);
    fix_pad(&fx, 32);
    for (size_t i = 0; i < 32 + data; i++)
        fix_u8(&fx, (unsigned)(i * 7) & 255);
    if (!spill(model_path, fx.data, fx.size))
        exit(99);
    fix_fini(&fx);
}

enum gguf_status edit(size_t n, char c, const struct gguf_edit_params *p,
                      enum gguf_edit_result *way, struct gguf_error *err)
{
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    char *text = malloc(n + 1);
    memset(text, c, n);
    enum gguf_status st = gguf_file_open(&f, model_path, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_create(&m, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(m, f, err);
    if (st == GGUF_OK && n)
        st = gguf_meta_set_str(m, "text", (struct gguf_str){ text, n }, err);
    else if (st == GGUF_OK)
        gguf_meta_remove(m, "text");
    if (st == GGUF_OK)
        st = gguf_edit_apply(f, m, p, way, err);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    free(text);
    return st;
}

size_t length_of(const char *name, const char *key)
{
    struct gguf_file *f;
    struct gguf_error err;
    if (gguf_file_open(&f, name, NULL, &err) != GGUF_OK) {
        printf("# %s\n", err.message);
        return SIZE_MAX - 1;
    }
    const struct gguf_kv *kv = gguf_file_kv_find(f, key);
    size_t n = kv ? kv->size : SIZE_MAX;
    gguf_file_close(f);
    return n;
}

int data_good(const char *name)
{
    struct gguf_file *f;
    if (gguf_file_open(&f, name, NULL, NULL) != GGUF_OK)
        return 0;
    int good = gguf_file_n_tensors(f) == 2;
    for (size_t i = 0, at = 0; good && i < 2; i++) {
        const uint8_t *d = gguf_file_tensor_data(f, i);
        for (uint64_t k = 0; k < gguf_file_tensor(f, i)->size; k++, at++)
            good = good && d[k] == (uint8_t)(at * 7);
    }
    gguf_file_close(f);
    return good;
}
