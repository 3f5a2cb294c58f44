/* SPDX-License-Identifier: MIT */
/* scratch.c - a folder for files of one input */
#include "config.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char dir[200];

static bool make_dir(const char *top)
{
    if (!top || !*top)
        return false;
    snprintf(dir, sizeof dir, "%s/gguf-fuzz-XXXXXX", top);
    return mkdtemp(dir) != NULL;
}

const char *scratch_path(const char *name)
{
    static char path[4][512];
    static int i;
    if (!dir[0]) {
        MUST(make_dir(getenv("TMPDIR")) || make_dir("/dev/shm") ||
             make_dir("/tmp"));
        atexit(scratch_fini);
    }
    i = (i + 1) % 4;
    snprintf(path[i], sizeof path[i], "%s/%s", dir, name);
    return path[i];
}

void scratch_write(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    MUST(f && (!size || fwrite(data, 1, size, f) == size));
    MUST(!fclose(f));
}

uint8_t *scratch_read(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    MUST(f && !fseek(f, 0, SEEK_END));
    long n = ftell(f);
    MUST(n >= 0 && !fseek(f, 0, SEEK_SET));
    *size = (size_t)n;
    uint8_t *p = malloc(*size + 1);
    MUST(p && fread(p, 1, *size, f) == *size);
    fclose(f);
    return p;
}

void scratch_clean(void)
{
    DIR *d = dir[0] ? opendir(dir) : NULL;
    struct dirent *e;
    char path[512];
    if (!d)
        return;
    while ((e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            unlink(path);
        }
    closedir(d);
}

void scratch_fini(void)
{
    scratch_clean();
    if (dir[0])
        rmdir(dir);
    dir[0] = '\0';
}
