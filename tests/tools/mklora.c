/* mklora - a LoRA adapter of random pairs for a model
 *
 *     mklora OUT MODEL RANK ALPHA [PART]
 *
 * A pair for each matrix of the file MODEL, or for those whose names have PART.
 */
#include "config.h"
#include "tests/model/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "mklora: %s: %s\n", what, why);
    exit(99);
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
        stop("usage", "mklora OUT MODEL RANK ALPHA [PART]");
    if (gguf_file_open(&file, argv[2], NULL, &err) ||
        gguf_kv_get_str(gguf_file_kv_find(file, "general.architecture"), &arch,
                        &err))
        stop(argv[2], err.message);
    snprintf(name, sizeof name, "%.*s", (int)arch.size, arch.data);
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
    void *data = lora_file(&l, GGUF_DTYPE_F16, &size);
    FILE *f = fopen(argv[1], "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        stop(argv[1], "cannot be written");
    free(data);
    lora_fini(&l);
    gguf_file_close(file);
    return 0;
}
