/* mkfix.c - write every fixture as a file: mkfix DIRECTORY */
#include "config.h"
#include "tests/fix.h"

#include <stdio.h>

static int write_all(const char *dir, const struct fixture *x)
{
    for (; x->name; x++) {
        char path[4096];
        struct fix f;
        fix_init(&f);
        x->make(&f);
        snprintf(path, sizeof path, "%s/%s.gguf", dir, x->name);
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(f.data, 1, f.size, out) != f.size || fclose(out)) {
            perror(path);
            return 1;
        }
        fix_fini(&f);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: mkfix DIRECTORY\n");
        return 2;
    }
    return write_all(argv[1], fix_good) || write_all(argv[1], fix_bad_meta) ||
           write_all(argv[1], fix_bad_tensor);
}
