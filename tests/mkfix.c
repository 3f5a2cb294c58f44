/* SPDX-License-Identifier: MIT */
/* mkfix.c - write every fixture as a file: mkfix DIRECTORY */
#include "config.h"
#include "tests/fix.h"

#include <stdio.h>

static int write_one(const char *dir, const char *name,
                     void (*make)(struct fix *f))
{
    char path[4096];
    struct fix f;
    fix_init(&f);
    make(&f);
    snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
    FILE *out = fopen(path, "wb");
    if (!out || (f.size && fwrite(f.data, 1, f.size, out) != f.size) ||
        fclose(out)) {
        perror(path);
        return 1;
    }
    fix_fini(&f);
    return 0;
}

static int write_all(const char *dir, const struct fixture *x)
{
    for (; x->name; x++)
        if (write_one(dir, x->name, x->make))
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: mkfix DIRECTORY\n");
        return 2;
    }
    for (const struct fix_model *x = fix_models; x->name; x++)
        if (write_one(argv[1], x->name, x->make))
            return 1;
    return write_all(argv[1], fix_good) || write_all(argv[1], fix_bad_meta) ||
           write_all(argv[1], fix_bad_tensor);
}
