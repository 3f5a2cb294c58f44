/* SPDX-License-Identifier: MIT */
/* check-published.c - folders with the tensor names of published models
 *
 * Each section [published CLASS NAME] of the texts (folder_text.h) becomes a
 * folder of zeros. Every tensor must get a place in the file, or be left out
 * because it carries no information. The file must be sound for its
 * architecture.
 */
#include "config.h"
#include "gguf/convert.h"
#include "gguf/verify.h"
#include "tests/ignore_status.h"
#include "tests/model/findings.h"
#include "tests/convert/folder_text.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

static char top[200];
static struct folder left; /* tensors without information */

static bool is_left(const char *name)
{
    return folder_find(&left, name) != NULL;
}

/* Name of the first tensor that is wrongly left out or kept; NULL: none. */
static const char *wrong_name(const struct gguf_convert *c)
{
    size_t used = 0;
    for (size_t i = 0; i < gguf_convert_n_omitted(c); i++)
        if (!is_left(gguf_convert_omitted(c, i)))
            return gguf_convert_omitted(c, i);
    for (size_t i = 0; i < gguf_convert_n_tensors(c); i++)
        for (size_t k = 0; k < gguf_convert_tensor(c, i)->n_from; k++, used++)
            if (is_left(gguf_convert_source(c, i, k)))
                return gguf_convert_source(c, i, k);
    return gguf_convert_n_omitted(c) == left.n_tensors
               ? NULL
               : "not all are left out";
}

static bool is_arch(const struct gguf_convert *c, const char *arch)
{
    struct gguf_str name = { "", 0 };
    const struct gguf_kv *kv =
        gguf_meta_find(gguf_convert_meta(c), "general.architecture");
    if (kv)
        ignore_status(gguf_kv_get_str(kv, &name, NULL));
    return name.size == strlen(arch) && !memcmp(name.data, arch, name.size);
}

static void check_model(const struct folder_text *t, void *user)
{
    static struct folder folder;
    struct gguf_convert *c = NULL;
    struct gguf_file *file = NULL;
    struct findings seen = { .n = 0 };
    struct gguf_error e;
    char label[200];
    const char *out = scratch_path(top, "out.gguf");
    (void)user;
    gguf_error_clear(&e);
    snprintf(label, sizeof label, "%s (%s)", t->class_name, t->published);
    left.n_tensors = 0;
    folder_tensors(&left, t->left, t->layers, FOLDER_EXPERTS);
    folder_text_make(t, scratch_path(top, "folder"), true, &folder);
    folder_weights(&folder, "BF16", 1);
    enum gguf_status st = gguf_convert_open(&c, folder.dir, NULL, &e);
    ok(st == GGUF_OK, "%s is planned: %s", label, e.message);
    if (st == GGUF_OK) {
        const char *wrong = wrong_name(c);
        ok(!wrong, "%s: every name has its place: %s", label,
           wrong ? wrong : "");
        ok(is_arch(c, t->arch), "%s: it becomes %s", label, t->arch);
    }
    gguf_convert_close(c);
    if (st == GGUF_OK)
        st = folder_convert(folder.dir, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_open(&file, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_verify(
            file, NULL, (struct gguf_finding_callback){ findings_note, &seen },
            &e);
    ok(st == GGUF_OK && !seen.n_error, "%s: a sound file: %s%s", label,
       e.message, seen.last);
    gguf_file_close(file);
    scratch_clean(top);
}

int main(void)
{
    static struct folder f;
    snprintf(top, sizeof top, "check-published.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    ok(folder_text_each(true, check_model, NULL), "all texts can be read");
    rmdir(top);
    return done_testing();
}
