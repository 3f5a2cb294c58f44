/* SPDX-License-Identifier: MIT */
/* nearest_arch.c - messages about a file of an unknown architecture */
#include "config.h"
#include "tools/common/nearest_arch.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <gguf/model_base.h>
#include <gguf/recognize.h>

#include <string.h>

/* Names of architectures, and differences, that are printed at most. */
enum { MOST_NAMES = 24, MOST_LINES = 12 };

struct printed {
    const char *path;
    size_t n;
    bool prevented; /* a difference prevents the evaluation */
};

static bool print_difference(void *user, const struct gguf_arch_difference *d)
{
    struct printed *p = user;
    p->prevented |= d->prevents;
    if (p->n++ < MOST_LINES)
        msg_error(p->path, "  %s", d->message);
    return false;
}

/* Print the architectures that are as near as the first. */
static void print_others(const char *path, const char *const *arch, size_t n)
{
    struct text s = { NULL, 0, 0 };
    for (size_t i = 1; i < n && i < MOST_NAMES; i++)
        text_addf(&s, "%s'%s'", i > 1 ? ", " : "", arch[i]);
    if (n > MOST_NAMES)
        text_addf(&s, " and %zu more", n - MOST_NAMES);
    msg_error(path,
              "as near %s %s; the same tensors may compute something else in "
              "%s",
              n == 2 ? "is" : "are", s.s, n == 2 ? "it" : "each");
    text_fini(&s);
}

static bool is_known(const struct gguf_file *file)
{
    struct gguf_str name;
    const char *arch;
    if (gguf_kv_get_str(gguf_file_kv_find(file, "general.architecture"), &name,
                        NULL) != GGUF_OK)
        return true;
    for (size_t i = 0; (arch = gguf_model_arch_at(i)) != NULL; i++)
        if (strlen(arch) == name.size && !memcmp(arch, name.data, name.size))
            return true;
    return false;
}

void nearest_arch_print(const struct gguf_file *file, const char *path)
{
    const char *arch[MOST_NAMES];
    size_t n, n_differences;
    struct printed p = { .path = path };
    if (is_known(file) ||
        gguf_arch_find_nearest(file, arch, MOST_NAMES, &n, &n_differences,
                               NULL) != GGUF_OK)
        return;
    if (n_differences)
        msg_error(path, "'%s' comes nearest, with %zu difference%s:", arch[0],
                  n_differences, text_s(n_differences));
    if (gguf_arch_compare(
            file, arch[0],
            (struct gguf_arch_difference_callback){ print_difference, &p },
            NULL) != GGUF_OK)
        return;
    if (n_differences > MOST_LINES)
        msg_error(path, "  and %zu more", n_differences - MOST_LINES);
    if (!n_differences)
        msg_error(path,
                  "'%s' comes nearest, with the same tensors and keys: '--as "
                  "%s' evaluates the model as one of it",
                  arch[0], arch[0]);
    else if (p.prevented)
        msg_error(path,
                  "'--as %s' refuses the model for %s difference%s; it "
                  "evaluates models without %s",
                  arch[0], n_differences == 1 ? "this" : "these",
                  text_s(n_differences), n_differences == 1 ? "it" : "them");
    else
        msg_error(path, "'--as %s' evaluates the model without %s", arch[0],
                  n_differences == 1 ? "this key" : "these keys");
    if (n > 1)
        print_others(path, arch, n);
}
