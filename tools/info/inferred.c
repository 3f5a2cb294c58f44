/* SPDX-License-Identifier: MIT */
/* inferred.c - parts of a model of an unknown architecture, by its tensors
 *
 * Each fact has the tensor that tells it, and the value of a key that
 * contradicts it. The nearest known architectures follow.
 */
#include "config.h"
#include "tools/info/info.h"

#include <gguf/model_base.h>
#include <gguf/recognize.h>

#include <inttypes.h>
#include <string.h>

/* Architectures that are named at most. */
enum { MOST_NAMES = 64 };

static bool is_equal(struct gguf_str s, const char *z)
{
    return s.size == strlen(z) && !memcmp(s.data, z, s.size);
}

/* Is the file a model whose architecture the library does not know? */
static bool is_unknown(const struct gguf_file *f)
{
    struct gguf_str s;
    const char *arch;
    if (gguf_kv_get_str(gguf_file_kv_find(f, "general.type"), &s, NULL) ==
            GGUF_OK &&
        !is_equal(s, "model"))
        return false;
    if (gguf_kv_get_str(gguf_file_kv_find(f, "general.architecture"), &s,
                        NULL) != GGUF_OK)
        return true;
    for (size_t i = 0; (arch = gguf_model_arch_at(i)) != NULL; i++)
        if (is_equal(s, arch))
            return false;
    return true;
}

/* ---- facts ---- */

struct facts {
    const struct info *info;
    struct json *j;  /* NULL: text */
    struct table *t; /* rows, if j is NULL */
    size_t n;
};

/* Value of the key that tells the same fact. false: the file lacks it, or it
 * is not a number. */
static bool find_key(const struct info *info, const char *name, uint64_t *v)
{
    const struct gguf_hparam *h;
    if (!strcmp(name, "vocabulary_size")) {
        *v = info_n_vocab(info);
        return *v > 0;
    }
    for (size_t i = 0; (h = gguf_hparam_at(i)) != NULL; i++)
        if (h->name && !strcmp(h->name, name))
            return gguf_kv_get_uint(info_hparam(info, h->key), v, NULL) ==
                   GGUF_OK;
    return false;
}

static void add_row(struct facts *f, const struct gguf_inferred *p)
{
    uint64_t key = 0;
    const bool differs =
        !p->text && find_key(f->info, p->name, &key) && key != p->value;
    f->n++;
    table_add(f->t, p->label);
    if (p->text)
        table_add(f->t, p->text);
    else if (differs)
        table_addf(f->t, "%" PRIu64 ", but the key says %" PRIu64, p->value,
                   key);
    else
        table_addf(f->t, "%" PRIu64, p->value);
    if (p->from.size)
        table_add_str(f->t, p->from);
    else
        table_add(f->t, "(no output.weight)");
}

static bool note_part(void *user, const struct gguf_inferred *p)
{
    struct facts *f = user;
    if (!f->j) {
        add_row(f, p);
        return false;
    }
    json_open(f->j, p->name, '{');
    if (p->text)
        json_strz(f->j, "value", p->text);
    else
        json_u64(f->j, "value", p->value);
    if (p->from.size)
        json_str(f->j, "from", p->from);
    else
        json_null(f->j, "from");
    json_close(f->j);
    return false;
}

/* ---- nearest architectures ---- */

static bool add_message(void *user, const struct gguf_arch_difference *d)
{
    json_strz(user, NULL, d->message);
    return false;
}

static bool count_difference(void *user, const struct gguf_arch_difference *d)
{
    size_t *n = user;
    n[d->kind >= GGUF_ARCH_KEY_EXTRA]++;
    return false;
}

static void json_nearest(struct json *j, const struct gguf_file *f,
                         const char *const *arch, size_t n)
{
    json_open(j, "nearest", '{');
    json_open(j, "architectures", '[');
    for (size_t i = 0; i < n && i < MOST_NAMES; i++)
        json_strz(j, NULL, arch[i]);
    json_close(j);
    json_open(j, "differences", '[');
    (void)(gguf_arch_compare(
               f, arch[0],
               (struct gguf_arch_difference_callback){ add_message, j },
               NULL) == GGUF_OK);
    json_close(j);
    json_close(j);
}

static void add_nearest(struct table *t, const struct gguf_file *f,
                        const char *const *arch, size_t n)
{
    struct text s = { NULL, 0, 0 };
    size_t of[2] = { 0, 0 }; /* tensors, keys */
    for (size_t i = 0; i < n && i < 4; i++)
        text_addf(&s, "%s%s", i ? ", " : "", arch[i]);
    if (n > 4)
        text_addf(&s, ", %zu more", n - 4);
    table_add(t, n > 1 ? "nearest architectures" : "nearest architecture");
    table_add(t, s.s);
    text_fini(&s);
    if (gguf_arch_compare(
            f, arch[0],
            (struct gguf_arch_difference_callback){ count_difference, of },
            NULL) != GGUF_OK)
        of[0] = of[1] = 0;
    if (of[0] + of[1])
        table_addf(t, "(%zu tensor%s and %zu key%s differ)", of[0],
                   text_s(of[0]), of[1], text_s(of[1]));
    else
        table_add(t, "(no difference in tensors and keys)");
}

void info_inferred(struct json *j, const struct info *info,
                   const struct info_options *o)
{
    const struct gguf_file *file = info->load->file;
    const char *arch[MOST_NAMES];
    struct table t;
    struct facts f = { .info = info, .j = j, .t = &t };
    size_t n = 0;
    if (!is_unknown(file))
        return;
    if (j) {
        json_open(j, "inferred", '{');
    } else {
        table_init(&t, "lll", o->markdown ? 0 : 2);
        t.drop = "2";
        table_add(&t, "part");
        table_add(&t, "inferred");
        table_add(&t, "from");
    }
    const bool good =
        gguf_file_infer_parts(file,
                              (struct gguf_inferred_callback){ note_part, &f },
                              NULL) == GGUF_OK;
    if (j)
        json_close(j);
    if (gguf_arch_find_nearest(file, arch, MOST_NAMES, &n, NULL, NULL) !=
        GGUF_OK)
        n = 0;
    if (j) {
        if (n)
            json_nearest(j, file, arch, n);
        return;
    }
    if (n)
        add_nearest(&t, file, arch, n);
    if (good && f.n + n) {
        info_heading("Unknown architecture: inferred from the tensors", o);
        info_table(&t, o);
    } else {
        table_fini(&t);
    }
}
