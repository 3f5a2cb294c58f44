/* SPDX-License-Identifier: MIT */
/* name_wrappers.c - remove segments that wrappers add to names of tensors
 *
 * Training programs wrap modules, which shows in the names of tensors: PEFT,
 * TRL, torch.compile, DDP, FSDP and others add a segment at the beginning or
 * before any module. These segments are removed wherever they stand.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

/* Segments of wrappers: of torch.compile, DDP, FSDP, activation checkpointing,
 * and Lightning Fabric. */
static const char *const segments[] = { "_orig_mod",
                                        "module",
                                        "_fsdp_wrapped_module",
                                        "_fpw_module",
                                        "_checkpoint_wrapped_module",
                                        "_forward_module" };

/* Segment that PEFT puts after a module's name in a model that is saved with
 * its adapter. Names of adapters keep it: a nested adapter is not read. */
static const char base_layer[] = "base_layer";

/* Prefixes of wrappers, of PEFT and of TRL's models with a value head. */
static const char *const fronts[] = { "base_model.model.",
                                      "pretrained_model." };

static bool is_wrapper(struct gguf_str segment, unsigned *which)
{
    for (unsigned i = 0; i < GG_LEN(segments); i++)
        if (gg_str_eqz(segment, segments[i])) {
            *which |= 1u << i;
            return true;
        }
    return false;
}

bool gg_convert_strip_wrappers(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               unsigned *which)
{
    size_t used = 0;
    while (name.size) {
        const char *dot = memchr(name.data, '.', name.size);
        const size_t n = dot ? (size_t)(dot - name.data) + 1 : name.size;
        const struct gguf_str segment = { name.data, n - (dot != NULL) };
        if (!dot || !(is_wrapper(segment, which) ||
                      (!c->is_adapter && gg_str_eqz(segment, base_layer)))) {
            if (used + n >= GG_CONVERT_NAME)
                return false;
            memcpy(out + used, name.data, n);
            used += n;
        }
        name.data += n;
        name.size -= n;
    }
    out[used] = 0;
    for (size_t i = 0; i < GG_LEN(fronts); i++) {
        const size_t n = strlen(fronts[i]);
        if (strncmp(out, fronts[i], n) != 0 || !out[n])
            continue;
        *which |= 1u << (GG_LEN(segments) + i);
        memmove(out, out + n, strlen(out + n) + 1);
        i = (size_t)-1; /* wrappers may be nested */
    }
    return true;
}

/* Does a name of the class have the first segment of name, n bytes, after
 * prefix (*with), or at its beginning (*without)? */
static void compare_segment(const char *of_class, const char *prefix,
                            const char *name, size_t n, bool *with,
                            bool *without)
{
    const size_t k = strlen(prefix);
    const bool has = !strncmp(of_class, prefix, k);
    of_class += has ? k : 0;
    if (strncmp(of_class, name, n) != 0 || (of_class[n] && of_class[n] != '.'))
        return;
    *(has ? with : without) = true;
}

/* Does name lack prefix, by its first segment? */
static bool lacks_prefix(const struct gguf_convert *c, const char *name,
                         const char *prefix)
{
    const struct gg_convert_arch *a = c->arch;
    const size_t n = strcspn(name, ".");
    bool with = false, without = false;
    if (a->drafts)
        compare_segment(a->drafts, prefix, name, n, &with, &without);
    for (size_t i = 0; i < GG_LEN(a->names) && a->names[i]; i++)
        for (const struct gg_convert_name *row = a->names[i]; row->from; row++)
            compare_segment(row->from, prefix, name, n, &with, &without);
    return with && !without;
}

bool gg_convert_unwrap(const struct gguf_convert *c, struct gguf_str name,
                       char out[GG_CONVERT_NAME])
{
    unsigned which = 0;
    const size_t n = c->folder.prefix.size, k = strlen(c->folder.added);
    if (!gg_convert_strip_wrappers(c, name, out, &which))
        return false;
    size_t size = strlen(out);
    if (n && size > n && !memcmp(out, c->folder.prefix.data, n)) {
        memmove(out, out + n, size - n + 1);
        size -= n;
    }
    if (!k || !lacks_prefix(c, out, c->folder.added))
        return true;
    if (size + k >= GG_CONVERT_NAME)
        return false;
    memmove(out + k, out, size + 1);
    memcpy(out, c->folder.added, k);
    return true;
}

const char *gg_convert_wrapper_name(size_t i)
{
    if (i < GG_LEN(segments))
        return segments[i];
    i -= GG_LEN(segments);
    return i < GG_LEN(fronts) ? fronts[i] : NULL;
}
