/* SPDX-License-Identifier: MIT */
/* mkfix.c - writes every fixture to a file: mkfix DIRECTORY */
#include "config.h"
#include "tests/fix.h"

#include <stdio.h>

static int write_file(const char *dir, const char *name, struct fix *f)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
    FILE *out = fopen(path, "wb");
    if (!out || (f->size && fwrite(f->data, 1, f->size, out) != f->size) ||
        fclose(out)) {
        perror(path);
        return 1;
    }
    fix_fini(f);
    return 0;
}

static int write_all(const char *dir, const char *part)
{
    struct fix f;
    for (const struct fixture *x = fix_list(part); x->name; x++) {
        fix_init(&f);
        fix_make(x, &f);
        if (write_file(dir, x->name, &f))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct fix f;
    if (argc != 2) {
        fprintf(stderr, "usage: mkfix DIRECTORY\n");
        return 2;
    }
    for (const struct fix_model *x = fix_models; x->name; x++) {
        fix_init(&f);
        x->make(&f);
        if (write_file(argv[1], x->name, &f))
            return 1;
    }
    return write_all(argv[1], "good") || write_all(argv[1], "bad metadata") ||
           write_all(argv[1], "bad tensors");
}
