/* SPDX-License-Identifier: MIT */
/* edit MODEL KEY TEXT - set a key of the metadata to a string */
#include <gguf/gguf.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct gguf_file *file = NULL;
    struct gguf_meta *meta = NULL;
    struct gguf_error err;
    enum gguf_status st;

    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL KEY TEXT\n", argv[0]);
        return 2;
    }
    st = gguf_file_open(&file, argv[1], NULL, &err);
    if (!st)
        st = gguf_meta_create(&meta, NULL, &err);
    if (!st)
        st = gguf_meta_copy_file(meta, file, &err);
    if (!st)
        st = gguf_meta_set_strz(meta, argv[2], argv[3], &err);
    if (!st) /* edits the file in place, or writes a copy and renames it */
        st = gguf_edit_apply(file, meta, NULL, NULL, &err);
    if (st)
        fprintf(stderr, "%s: %s\n", argv[1], err.message);

    gguf_meta_destroy(meta);
    gguf_file_close(file);
    return st != GGUF_OK;
}
