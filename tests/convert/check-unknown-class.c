/* SPDX-License-Identifier: MIT */
/* check-unknown-class.c - folders of unknown classes: the nearest ones by names
 * of tensors, and conversion as one of a known class
 *
 * Each folder of the families' texts under another class becomes the model that
 * it becomes under its own.
 */
#include "config.h"
#include "convert/classes.h"
#include "base/str.h"
#include "gguf/convert.h"
#include "tests/convert/folder_text.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char top[200];
static char notes[4000];

static void keep_note(void *user, enum gguf_convert_note_kind kind,
                      const char *line)
{
    const size_t n = strlen(notes);
    (void)user;
    snprintf(notes + n, sizeof notes - n, "%s%s\n",
             kind == GGUF_CONVERT_WARNING ? "warning: " : "", line);
}

static enum gguf_status open_as(struct gguf_convert **c, const char *as,
                                struct gguf_error *err)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    p.as = as;
    p.note.fn = keep_note;
    notes[0] = '\0';
    gguf_error_clear(err);
    return gguf_convert_open(c, scratch_path(top, "Folder"), &p, err);
}

static void make_folder(const struct folder_text *t)
{
    static struct folder f;
    folder_text_make(t, scratch_path(top, "Folder"), false, &f);
    folder_weights(&f, "F32", 1);
}

static bool is_same_pair(const struct gguf_kv *a, const struct gguf_kv *b)
{
    return b && a->type == b->type && a->elem_type == b->elem_type &&
           a->size == b->size && !memcmp(a->data, b->data, a->size);
}

/* Are two plans the same file? Names and shapes of tensors, and all keys. */
static bool is_same_plan(const struct gguf_convert *a,
                         const struct gguf_convert *b)
{
    const struct gguf_meta *x = gguf_convert_meta(a);
    const struct gguf_meta *y = gguf_convert_meta(b);
    bool same = gguf_convert_n_tensors(a) == gguf_convert_n_tensors(b) &&
                gguf_meta_n_kv(x) == gguf_meta_n_kv(y);
    for (size_t i = 0; same && i < gguf_convert_n_tensors(a); i++)
        same = !strcmp(gguf_convert_tensor(a, i)->name,
                       gguf_convert_tensor(b, i)->name) &&
               !memcmp(gguf_convert_tensor(a, i)->ne,
                       gguf_convert_tensor(b, i)->ne,
                       sizeof gguf_convert_tensor(b, i)->ne);
    for (size_t i = 0; same && i < gguf_meta_n_kv(x); i++)
        same = is_same_pair(gguf_meta_kv(x, i), gguf_meta_kv(y, i));
    return same;
}

struct counts {
    size_t n, n_nearest, n_first;
};

static void check_text(const struct folder_text *t, void *user)
{
    static struct folder_text changed;
    struct gguf_convert *own = NULL, *other = NULL;
    struct gguf_error err;
    struct counts *n = user;
    char text[80];
    make_folder(t);
    const bool good = open_as(&own, NULL, &err) == GGUF_OK;
    changed = *t;
    changed.class_name[0] = 'X';
    make_folder(&changed);
    if (good && open_as(&other, NULL, &err) == GGUF_E_ARCH) {
        n->n++;
        n->n_nearest += strstr(err.message, "; nearest by names") != NULL;
        snprintf(text, sizeof text, "'%s'", t->class_name);
        n->n_first += strstr(err.message, text) != NULL;
        const enum gguf_status st = open_as(&other, t->class_name, &err);
        ok(st == GGUF_OK && is_same_plan(own, other) &&
               strstr(notes, "warning: class 'X"),
           "%s under another name: %s", t->class_name, err.message);
    }
    gguf_convert_close(own);
    gguf_convert_close(other);
    scratch_clean(top);
}

/* ---- messages ---- */

/* A llama under another class, with other members of config.json, and "from" in
 * its tensors replaced by "to". */
static void make_changed(const char *members, const char *from, const char *to)
{
    static struct folder_text changed;
    const struct folder_text *t = folder_text_find("LlamaForCausalLM");
    changed = *t;
    snprintf(changed.class_name, sizeof changed.class_name, "NewForCausalLM");
    if (members && !folder_text_set(&changed, members))
        printf("# malformed members\n");
    const char *at = from ? strstr(t->tensors, from) : NULL;
    if (at)
        snprintf(changed.tensors, sizeof changed.tensors, "%.*s%s%s",
                 (int)(at - t->tensors), t->tensors, to, at + strlen(from));
    make_folder(&changed);
}

static void check_open(const char *as, enum gguf_status status,
                       const char *says, const char *what)
{
    struct gguf_convert *c = NULL;
    struct gguf_error err;
    const enum gguf_status st = open_as(&c, as, &err);
    ok(st == status && strstr(st == GGUF_OK ? notes : err.message, says),
       "%s: %s%s", what, err.message, notes);
    gguf_convert_close(c);
}

static void check_messages(void)
{
    make_changed(NULL, NULL, NULL);
    check_open(NULL, GGUF_E_ARCH, "'LlamaForCausalLM'",
               "the error names a class of the same names");
    check_open("llama", GGUF_OK, "converted as LlamaForCausalLM",
               "an architecture instead of a class");
    check_open("Qwen3ForCausalLM", GGUF_OK, "converted as Qwen3ForCausalLM",
               "weights that are missing are found by the job's check");
    check_open("Llamas", GGUF_E_INVALID, "no class or architecture 'Llamas'",
               "an unknown name");
    scratch_clean(top);
    make_changed("\"new_scale\":2.5, \"new_off\":false", NULL, NULL);
    check_open("llama", GGUF_OK, "1 member is not read: new_scale",
               "members of config.json that are not read are named");
    scratch_clean(top);
    make_changed(NULL, "self_attn.q_proj.weight", "self_attn.strange.weight");
    check_open(NULL, GGUF_E_ARCH,
               "has no tensor 'model.layers.0.self_attn.strange.weight'",
               "a name that the nearest class lacks");
    check_open(NULL, GGUF_E_ARCH, "requires 1 tensor that the folder lacks",
               "a weight that it requires");
    check_open("llama", GGUF_E_TENSOR, "self_attn.strange.weight",
               "the tensor has no place");
    scratch_clean(top);
    make_folder(folder_text_find("LlamaForCausalLM"));
    check_open("qwen2", GGUF_E_INVALID, "'LlamaForCausalLM' is known",
               "a known class is not converted as another");
    check_open("LlamaForCausalLM", GGUF_OK, "", "a known class may be named");
    scratch_clean(top);
}

int main(void)
{
    static struct folder f;
    static struct counts n;
    snprintf(top, sizeof top, "check-unknown-class.%d.tmp", (int)getpid());
    if (system(NULL) == 0)
        return 99;
    folder_begin(&f, top);
    ok(folder_text_each(false, check_text, &n), "all texts can be read");
    ok(n.n > 180 && n.n_nearest == n.n && n.n_first > n.n / 2,
       "of %zu unknown classes, %zu errors name the nearest, %zu the own", n.n,
       n.n_nearest, n.n_first);
    check_messages();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
