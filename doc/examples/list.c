/* SPDX-License-Identifier: MIT */
/* list MODEL - print the name, type, shape and size of every tensor */
#include <gguf/gguf.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct gguf_file *file;
    struct gguf_error err;

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL\n", argv[0]);
        return 2;
    }
    if (gguf_file_open(&file, argv[1], NULL, &err) != GGUF_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
        return 1;
    }
    for (size_t i = 0; i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
        const struct gguf_dtype_info *type = gguf_dtype_find(t->dtype);
        printf("%.*s %s", (int)t->name.size, t->name.data,
               type ? type->name : "?");
        for (unsigned d = 0; d < t->n_dims; d++)
            printf(" %c%" PRIi64, d ? 'x' : '[', t->ne[d]);
        printf(" ] %" PRIu64 " bytes\n", t->size);
    }
    gguf_file_close(file);
    return 0;
}
