/* SPDX-License-Identifier: MIT */
/* mkskeleton.c - writes the model of a description (tests/family)
 *
 *   mkskeleton OUT NAME
 */
#include "config.h"
#include "tests/family/skeleton.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    struct skeleton s;
    size_t size;
    if (argc != 3 || !skeleton_open(&s, argv[2])) {
        fprintf(stderr, "usage: mkskeleton OUT NAME\n");
        return 99;
    }
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    FILE *f = fopen(argv[1], "wb");
    const bool good = f && fwrite(data, 1, size, f) == size;
    if (!f || fclose(f) || !good) {
        fprintf(stderr, "mkskeleton: %s: cannot be written\n", argv[1]);
        return 99;
    }
    free(data);
    skeleton_close(&s);
    return 0;
}
