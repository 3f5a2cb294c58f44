/* SPDX-License-Identifier: MIT */
/* unread_keys.c - keys of a file that an architecture's models do not read */
#include "config.h"
#include "model/unread_keys.h"

#include "base/str.h"
#include "model/weight/needs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum gguf_status gg_unread_keys_check_prefix(struct gguf_str name,
                                             uint64_t off,
                                             struct gguf_error *err)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    struct gg_str_esc e;
    bool plain = name.size > 0 && name.size <= GG_ARCH_PREFIX_MAX;
    for (size_t i = 0; i < name.size && plain; i++)
        plain = name.data[i] && strchr(good, name.data[i]);
    if (plain)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, off,
                        "architecture '%s' has a name of other bytes than "
                        "letters, digits, '-', '_' and '.', or not 1 to %d of "
                        "them: no other architecture is tried",
                        gg_str_esc(&e, name), GG_ARCH_PREFIX_MAX);
}

/* Hyperparameter of a key without its prefix, from number first on; 0: none.
 * Several may have one key, in different architectures. */
static size_t find_hparam(struct gguf_str suffix, size_t first)
{
    const struct gguf_hparam *h;
    for (size_t i = first; (h = gguf_hparam_at(i - 1)) != NULL; i++)
        if (h->key[0] != '/' && gg_str_eqz(suffix, h->key))
            return i;
    return 0;
}

/* Does a row read the key of a hyperparameter? */
static bool is_in_row(const struct gg_needs *needs, struct gguf_str suffix)
{
    for (size_t id = find_hparam(suffix, 1); id;
         id = find_hparam(suffix, id + 1))
        if (needs->key[id])
            return true;
    return false;
}

/* Does a key that the row does not list change no model? The size of the
 * vocabulary is read for every architecture; the epsilon of one kind of norms
 * says nothing about the other; 0 and false turn a mechanism off. */
static bool is_inert(size_t id, const struct gguf_kv *kv)
{
    double number = 1;
    bool yes = true;
    uint64_t count = 1;
    return id == GG_HP_n_vocab_key || id == GG_HP_norm_eps ||
           id == GG_HP_norm_rms_eps ||
           (gguf_kv_get_uint(kv, &count, NULL) == GGUF_OK && !count) ||
           (gguf_kv_get_float(kv, &number, NULL) == GGUF_OK && number == 0) ||
           (gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK && !yes);
}

const struct gguf_kv *gg_unread_keys_next(const struct gguf_file *meta,
                                          const struct gg_arch *arch,
                                          struct gguf_str prefix, size_t *i,
                                          bool *known)
{
    struct gg_needs needs;
    gg_needs_fill_keys(arch, &needs);
    while (*i < gguf_file_n_kv(meta)) {
        const struct gguf_kv *kv = gguf_file_kv(meta, (*i)++);
        struct gguf_str suffix = kv->key;
        if (suffix.size <= prefix.size ||
            memcmp(suffix.data, prefix.data, prefix.size) != 0 ||
            suffix.data[prefix.size] != '.')
            continue;
        suffix.data += prefix.size + 1;
        suffix.size -= prefix.size + 1;
        const size_t id = find_hparam(suffix, 1);
        if (id && (is_in_row(&needs, suffix) || is_inert(id, kv)))
            continue;
        *known = id != 0;
        return kv;
    }
    return NULL;
}

static void warn_key(const struct gguf_model *m, const struct gguf_kv *kv)
{
    struct gg_str_esc e;
    char line[256];
    snprintf(line, sizeof line,
             "key '%.120s' is not read: the model is evaluated as one of "
             "architecture '%s'",
             gg_str_esc(&e, kv->key), m->arch->name);
    m->warn.fn(m->warn.user, line);
}

enum gguf_status gg_unread_keys_check(const struct gguf_model *m,
                                      struct gguf_error *err)
{
    const struct gguf_file *meta = gg_source_meta(&m->src);
    const struct gguf_kv *kv;
    struct gg_str_esc e;
    bool known;
    for (size_t i = 0; (kv = gg_unread_keys_next(meta, m->arch, m->prefix, &i,
                                                 &known)) != NULL;)
        if (known)
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, kv->off,
                "key '%s' changes models of other architectures, and those "
                "of '%s' do not read it: the model cannot be evaluated as one",
                gg_str_esc(&e, kv->key), m->arch->name);
    for (size_t i = 0;
         m->warn.fn && (kv = gg_unread_keys_next(meta, m->arch, m->prefix, &i,
                                                 &known)) != NULL;)
        warn_key(m, kv);
    return GGUF_OK;
}
