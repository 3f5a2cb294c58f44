/* SPDX-License-Identifier: MIT */
/* check-name-prefix.c - folders whose tensor names have an additional prefix,
 * or lack one
 *
 * The tensors of each small model are renamed as PEFT, TRL, torch.compile,
 * DDP, FSDP or any program does it. The conversion must give the same tensors
 * from the same sources, and one note must name the prefix.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/folder_text.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <string.h>
#include <unistd.h>

static char top[100];

/* ---- renaming ---- */

/* A way to rename tensors.
 *
 * front: prefix of all names. middle: text after the first segment. inner:
 * text before "self_attn". removed: prefix to remove where it stands. part: a
 * module with another name in the class than in the checkpoint.
 */
struct renaming {
    const char *front, *middle, *inner, *removed;
    const char *part, *as;
};
static const struct renaming renamings[] = {
    { "base_model.model.", "", "", "", NULL, NULL },
    { "_orig_mod.", "", "", "", NULL, NULL },
    { "module.", "", "", "", NULL, NULL },
    { "pretrained_model.", "", "", "", NULL, NULL },
    { "_fsdp_wrapped_module.", "", "", "", NULL, NULL },
    { "module._orig_mod.", "", "", "", NULL, NULL },
    { "pretrained_model.base_model.model._orig_mod.", "", "", "", NULL, NULL },
    { "", "_orig_mod.", "", "", NULL, NULL },
    { "_fsdp_wrapped_module.", "", "_fsdp_wrapped_module._orig_mod.", "", NULL,
      NULL },
    { "model.", "", "", "", NULL, NULL },
    { "engine.net.", "", "", "", NULL, NULL },
    { "", "", "", "model.", NULL, NULL },
    { "base_model.model.", "", "", "model.", NULL, NULL },
    { "", "", "", "", ".block_sparse_moe.", ".mlp." },
    { "", "", "", "", "backbone.", "model." },
};
enum { N_RENAMINGS = sizeof renamings / sizeof *renamings };

static void rename_one(char out[400], const char *name,
                       const struct renaming *r)
{
    const size_t n = strlen(r->removed);
    const char *part = r->part ? strstr(name, r->part) : NULL;
    if (r->part) {
        snprintf(out, 400, "%.*s%s%s",
                 (int)(part ? part - name : (ptrdiff_t)strlen(name)), name,
                 part ? r->as : "", part ? part + strlen(r->part) : "");
        return;
    }
    if (n && !strncmp(name, r->removed, n))
        name += n;
    const size_t first = strcspn(name, ".") + (strchr(name, '.') != NULL);
    const char *inner = strstr(name + first, "self_attn.");
    const size_t k = inner ? (size_t)(inner - name) : strlen(name);
    snprintf(out, 400, "%s%.*s%s%.*s%s%s", r->front, (int)first, name,
             strchr(name, '.') ? r->middle : "", (int)(k - first),
             name + first, inner ? r->inner : "", name + k);
}

/* Does any name change? */
static bool changes_names(const struct folder *f, const struct renaming *r)
{
    char name[400];
    for (size_t i = 0; i < f->n_tensors; i++) {
        rename_one(name, f->tensor[i].name, r);
        if (strcmp(name, f->tensor[i].name) != 0)
            return true;
    }
    return false;
}

/* ---- folders ---- */

static void make_folder(struct folder *f, const struct folder_text *t,
                        const struct renaming *r)
{
    char name[400];
    folder_text_make(t, scratch_path(top, "hf"), false, f);
    f->sparse = true;
    for (size_t i = 0; r && i < f->n_tensors; i++) {
        rename_one(name, f->tensor[i].name, r);
        snprintf(f->tensor[i].name, sizeof f->tensor[i].name, "%.127s", name);
    }
    folder_weights(f, "F32", 1);
}

static void count_note(void *user, enum gguf_convert_note_kind kind,
                       const char *line)
{
    int *n = user;
    *n += strstr(line, "names of tensors") != NULL;
    (void)kind;
}

static enum gguf_status open_folder(struct gguf_convert **c, int *n_notes,
                                    struct gguf_error *err)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    p.note = (struct gguf_convert_note_callback){ count_note, n_notes };
    *n_notes = 0;
    gguf_error_clear(err);
    return gguf_convert_open(c, scratch_path(top, "hf"), &p, err);
}

/* Does the renamed folder give the tensors of f, each from the same sources?
 * Tensors that the conversion adds (RoPE factors) keep their names. */
static bool same_plan(const struct folder *f, const struct gguf_convert *as,
                      const struct gguf_convert *is, const struct renaming *r)
{
    char name[400];
    bool same = gguf_convert_n_tensors(as) == gguf_convert_n_tensors(is);
    for (size_t i = 0; same && i < gguf_convert_n_tensors(as); i++) {
        const struct gguf_convert_tensor *a = gguf_convert_tensor(as, i);
        const struct gguf_convert_tensor *b = gguf_convert_tensor(is, i);
        same = !strcmp(a->name, b->name) && a->n_from == b->n_from &&
               !strcmp(a->how, b->how);
        for (size_t k = 0; same && k < a->n_from; k++) {
            const char *from = gguf_convert_source(as, i, k);
            snprintf(name, sizeof name, "%s", from);
            if (folder_find(f, from))
                rename_one(name, from, r);
            same = !strcmp(name, gguf_convert_source(is, i, k));
        }
    }
    return same;
}

static void check_arch(const struct folder_text *a, void *user)
{
    static struct folder f, plain;
    struct gguf_convert *as, *is;
    struct gguf_error e;
    int n_notes;
    (void)user;
    /* a folder without config.json is recognized by its names */
    if (!strcmp(a->class_name, "PocketTTSModel"))
        return;
    make_folder(&plain, a, NULL);
    if (open_folder(&as, &n_notes, &e) != GGUF_OK) {
        ok(false, "%s: %s", a->class_name, e.message);
        return;
    }
    int n_good = 0, n_tried = 0;
    for (size_t i = 0; i < N_RENAMINGS; i++) {
        const struct renaming *r = &renamings[i];
        if (!changes_names(&plain, r))
            continue;
        make_folder(&f, a, r);
        n_tried++;
        const bool opens = open_folder(&is, &n_notes, &e) == GGUF_OK;
        const bool good =
            opens && same_plan(&plain, as, is, r) && n_notes <= 1;
        n_good += good;
        if (!good)
            printf("# %s: '%s' '%s' '%s' without '%s' '%s': %s, %d notes\n",
                   a->class_name, r->front, r->middle, r->inner, r->removed,
                   r->part ? r->part : "", e.message, n_notes);
        gguf_convert_close(is);
    }
    ok(n_good == n_tried && n_tried > 9, "%s, %d of %d ways to name it",
       a->class_name, n_good, n_tried);
    gguf_convert_close(as);
}

/* A prefix of only some names is not removed. */
static void check_mixed(void)
{
    static struct folder f;
    struct gguf_convert *c;
    struct gguf_error e;
    char name[400];
    int n_notes;
    make_folder(&f, folder_text_find("LlamaForCausalLM"), NULL);
    for (size_t i = 0; i < f.n_tensors; i++)
        if (strstr(f.tensor[i].name, "layers.1.")) {
            snprintf(name, sizeof name, "engine.%s", f.tensor[i].name);
            snprintf(f.tensor[i].name, sizeof f.tensor[i].name, "%.127s",
                     name);
        }
    folder_weights(&f, "F32", 1);
    ok(open_folder(&c, &n_notes, &e) != GGUF_OK &&
           strstr(e.message, "'engine.model.layers.1."),
       "a prefix of some layers is refused: %s", e.message);
}

int main(void)
{
    snprintf(top, sizeof top, "check-name-prefix.%d.tmp", (int)getpid());
    static struct folder f;
    folder_begin(&f, top);
    ok(folder_text_each(false, check_arch, NULL), "all texts can be read");
    check_mixed();
    scratch_clean(scratch_path(top, "hf"));
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
