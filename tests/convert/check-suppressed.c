/* SPDX-License-Identifier: MIT */
/* check-suppressed.c - tokens whose rows of the embedding are 0 become
 * tokenizer.ggml.suppress_tokens, if they are not the tokenizer's own
 */
#include "config.h"
#include "tests/convert/converted_vocab.h"
#include "tests/convert/folder_text.h"
#include "tests/slurp.h"

#include <stdlib.h>
#include <unistd.h>

/* Rows of the embedding; of the tokens, 0 to 257 are bytes and merges, 258 and
 * 259 are added. */
enum { WIDTH = 32, ROWS = 264, ADDED = 258 };

static char top[200];
static struct folder f;

/* Fill rows of the embedding in model.safetensors with 0. The first 8 bytes are
 * the header's length. */
static void clear_rows(const uint64_t *row, size_t n)
{
    static const char name[] = "\"model.embed_tokens.weight\"",
                      key[] = "\"data_offsets\":[";
    size_t size;
    uint64_t header;
    const char *path = scratch_path(f.dir, "model.safetensors");
    char *data = slurp(path, &size);
    memcpy(&header, data, sizeof header);
    char *at = strstr(data + 8, name);
    at = at ? strstr(at, key) : NULL;
    if (!at)
        abort();
    const uint64_t begin = 8 + header + strtoull(at + strlen(key), NULL, 10);
    for (size_t i = 0; i < n; i++)
        memset(data + begin + 4 * WIDTH * row[i], 0, 4 * WIDTH);
    FILE *o = fopen(path, "wb");
    if (!o || fwrite(data, 1, size, o) != size || fclose(o))
        abort();
    free(data);
}

static void make_folder(const uint64_t *row, size_t n)
{
    static struct folder_text t;
    t = *folder_text_find("MiniMaxText01ForCausalLM");
    char *at = strstr(t.tensors, "model.embed_tokens.weight 260");
    memcpy(strstr(at, "260"), "264", 3);
    at = strstr(t.tensors, "lm_head.weight 260");
    memcpy(strstr(at, "260"), "264", 3);
    if (!folder_text_set(&t, "\"vocab_size\":264"))
        abort();
    folder_text_make(&t, scratch_path(top, "folder"), false, &f);
    folder_weights(&f, "F32", 1);
    clear_rows(row, n);
}

static void put_ids(const struct converted_vocab *m, char out[200])
{
    int32_t id[16];
    const struct gguf_kv *kv =
        gguf_file_kv_find(m->file, "tokenizer.ggml.suppress_tokens");
    const size_t n = kv && kv->n <= 16 ? (size_t)kv->n : 0;
    *out = 0;
    if (kv && (!n || gguf_kv_get_elems_i32(kv, 0, n, id, NULL) != GGUF_OK))
        strcpy(out, "malformed");
    else
        for (size_t i = 0; i < n; i++)
            sprintf(out + strlen(out), "%d,", (int)id[i]);
}

static void check_rows(const uint64_t *row, size_t n, const char *want,
                       const char *what)
{
    const char *out = scratch_path(top, "out.gguf");
    struct converted_vocab m;
    struct gguf_error e;
    char got[200] = "";
    make_folder(row, n);
    const bool good = converted_vocab_open(&m, f.dir, out, &e) == GGUF_OK;
    if (good)
        put_ids(&m, got);
    ok(good && !strcmp(got, want), "%s: %s%s", what, got, e.message);
    if (good)
        converted_vocab_roundtrip(&f, out, top, what);
    converted_vocab_close(&m);
    scratch_clean(top);
}

int main(void)
{
    static const uint64_t rows[] = { 65, ADDED + 1, 261, ROWS - 1 };
    snprintf(top, sizeof top, "check-suppressed.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_rows(rows, 4, "259,261,263,",
               "rows of 0 that are not the tokenizer's own");
    check_rows(rows, 1, "", "no such row");
    rmdir(top);
    return done_testing();
}
