/* fuzz_edit.c - edit a file in place or by copy: what comes out opens, with
 * the metadata asked for and the same tensor data
 *
 * The last byte of the input chooses what is done.
 */
#include "config.h"
#include "gguf/edit.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void compare(const struct gguf_file *a, const char *path,
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_file *was, *f = NULL;
    struct gguf_meta *m = NULL;
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    if (size == 0 ||
        gguf_file_open_memory(&was, data, size, NULL, NULL) != GGUF_OK)
        return 0;
    char text[257];
    uint8_t how = data[size - 1];
    const char *path = scratch_path("edit.gguf");
    scratch_write(path, data, size);
    memset(text, 'x', sizeof text);
    text[how] = '\0';
    p.no_sync = 1;
    p.mode = how & 1 ? GGUF_EDIT_IN_PLACE : GGUF_EDIT_COPY;
    MUST(gguf_file_open(&f, path, NULL, NULL) == GGUF_OK);
    MUST(gguf_meta_create(&m, NULL, NULL) == GGUF_OK);
    MUST(gguf_meta_copy_file(m, f, NULL) == GGUF_OK);
    if (how & 2)
        MUST(gguf_meta_set_strz(m, "edited", text, NULL) == GGUF_OK);
    if (how & 4 && gguf_meta_n_kv(m) > 0) {
        struct gguf_str k = gguf_meta_kv(m, 0)->key;
        char *key = calloc(k.size + 1, 1);
        MUST(key);
        memcpy(key, k.data, k.size);
        MUST(gguf_meta_remove(m, key) == 1);
        free(key);
    }
    enum gguf_status st = gguf_edit_apply(f, m, &p, NULL, &err);
    gguf_file_close(f);
    MUST(st == GGUF_OK ||
         (st == GGUF_E_NOSPACE && p.mode == GGUF_EDIT_IN_PLACE));
    if (st == GGUF_OK)
        compare(was, path, m);
    gguf_meta_destroy(m);
    gguf_file_close(was);
    scratch_clean();
    return 0;
}

void fuzz_make_seeds(void)
{
    for (uint8_t how = 0; how < 8; how++)
        seed_files("", 0, &how, 1);
}
