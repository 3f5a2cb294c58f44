/* SPDX-License-Identifier: MIT */
/* mkpart.c - writes a part of an evaluation with other contents
 *
 *   mkpart IN OUT [CHANGE]...
 *
 * CHANGE: note NAME VALUE, set NAME VALUE, number I X (number I of the first
 * finished chunk: heads, then rows), many N (notes n0, n1 and so on). The
 * checksum is correct.
 */
#include "config.h"
#include "eval/part_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gguf_error err;

static void check_status(enum gguf_status st)
{
    if (st == GGUF_OK)
        return;
    fprintf(stderr, "mkpart: %s\n", err.message);
    exit(1);
}

static void set_number(struct gguf_part *p, size_t i, double x)
{
    size_t chunk = 0;
    while (!p->chunk[chunk].record)
        chunk++;
    p->chunk[chunk].record[i] = x;
}

static void add_notes(struct gguf_part *p, long n)
{
    char name[32];
    for (long i = 0; i < n; i++) {
        snprintf(name, sizeof name, "n%ld", i);
        check_status(gguf_part_set_note(p, name, "x", &err));
    }
}

int main(int argc, char **argv)
{
    struct gguf_part *p;
    if (argc < 3)
        return 2;
    check_status(gguf_part_load(&p, argv[1], NULL, &err));
    for (int i = 3; i + 1 < argc; i += 2) {
        const char *what = argv[i];
        if (!strcmp(what, "many")) {
            add_notes(p, atol(argv[i + 1]));
            continue;
        }
        if (i + 2 >= argc)
            return 2;
        if (!strcmp(what, "note"))
            check_status(
                gguf_part_set_note(p, argv[i + 1], argv[i + 2], &err));
        else if (!strcmp(what, "set"))
            check_status(
                gguf_part_set_setting(p, argv[i + 1], argv[i + 2], &err));
        else if (!strcmp(what, "number"))
            set_number(p, (size_t)atol(argv[i + 1]), atof(argv[i + 2]));
        else
            return 2;
        i++;
    }
    check_status(gguf_part_save(p, argv[2], true, &err));
    gguf_part_destroy(p);
    return 0;
}
