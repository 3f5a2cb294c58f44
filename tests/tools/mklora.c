/* SPDX-License-Identifier: MIT */
/* mklora.c - writes a LoRA adapter of random pairs for a model
 *
 *   mklora OUT MODEL RANK ALPHA [PART [NORM]]
 *
 * A pair for each matrix of the file MODEL, or for those whose names contain
 * PART; and a vector NORM, which is not part of a pair.
 *
 *   mklora OUT MODEL control LAYERS
 *
 * Writes a control vector instead, with directions after layers 1 to LAYERS.
 */
#include "config.h"
#include "tests/model/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail_with(const char *what, const char *why)
{
    fprintf(stderr, "mklora: %s: %s\n", what, why);
    exit(99);
}

static float direction[4096];

static void add_directions(struct gen *g, const char *arch, int64_t n_embd,
                           int n)
{
    gen_init(g, 1);
    if (n_embd > 4096 ||
        gguf_meta_set_strz(g->meta, "general.architecture", "controlvector",
                           NULL) ||
        gguf_meta_set_strz(g->meta, "controlvector.model_hint", arch, NULL))
        fail_with(arch, "no metadata");
    for (int64_t i = 0; i < n_embd; i++)
        direction[i] = (float)(i % 5 - 2) / 32;
    for (int il = 1; il <= n; il++) {
        gen_tensor(g, n_embd, 0, "direction.%d", il);
        g->t[g->n - 1].values = direction;
    }
}

static void write_file(const char *path, void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        fail_with(path, "cannot be written");
    free(data);
}

int main(int argc, char **argv)
{
    struct gguf_file *file;
    struct gguf_error err;
    struct lora l;
    struct gguf_str arch;
    char name[64];
    size_t size;
    if (argc < 5)
        fail_with("usage", "mklora OUT MODEL RANK ALPHA [PART]");
    if (gguf_file_open(&file, argv[2], NULL, &err) ||
        gguf_kv_get_str(gguf_file_kv_find(file, "general.architecture"), &arch,
                        &err))
        fail_with(argv[2], err.message);
    snprintf(name, sizeof name, "%.*s", (int)arch.size, arch.data);
    if (!strcmp(argv[3], "control")) {
        static struct gen g;
        const struct gguf_tensor_info *t =
            gguf_file_tensor_find(file, "token_embd.weight");
        add_directions(&g, name, t ? t->ne[0] : 0, atoi(argv[4]));
        void *data = gen_file(&g, GGUF_DTYPE_F32, &size);
        write_file(argv[1], data, size);
        gen_fini(&g);
        gguf_file_close(file);
        return 0;
    }
    lora_init(&l, name, atof(argv[4]));
    for (size_t i = 0; i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
        struct gen_tensor w = { .n_dims = t->n_dims };
        snprintf(w.name, sizeof w.name, "%.*s", (int)t->name.size,
                 t->name.data);
        memcpy(w.ne, t->ne, sizeof w.ne);
        if (t->n_dims > 1 && (argc < 6 || strstr(w.name, argv[5])))
            lora_pair(&l, &w, atoi(argv[3]), 0.1 / sqrt((double)t->ne[0]));
    }
    if (argc > 6)
        gen_tensor(&l.g, 8, 0, "%s", argv[6]);
    void *data = lora_file(&l, GGUF_DTYPE_F16, &size);
    write_file(argv[1], data, size);
    lora_fini(&l);
    gguf_file_close(file);
    return 0;
}
