/* SPDX-License-Identifier: MIT */
/* check-name.c - the layer number in a tensor's name, by the one rule that
 * splitting, recipes, pruning and architectures use */
#include "config.h"
#include "base/str.h"
#include "file/name.h"
#include "gguf/file.h"
#include "tests/tap.h"

#include <inttypes.h>

static const struct {
    const char *name;
    int64_t layer;
    const char *rest;
} cases[] = {
    { "blk.0.attn_q.weight", 0, "attn_q.weight" },
    { "blk.12.ffn_up.weight", 12, "ffn_up.weight" },
    { "blk.7.", 7, "" },
    { "blk.4294967295.x", 4294967295, "x" },
    { "blk.4294967296.x", -1, NULL },
    { "blk.18446744073709551617.x", -1, NULL },
    { "blk.99999999999999999999999999999999999999999.x", -1, NULL },
    { "blk.01.x", -1, NULL },
    { "blk.00.x", -1, NULL },
    { "blk.-1.x", -1, NULL },
    { "blk.+1.x", -1, NULL },
    { "blk. 1.x", -1, NULL },
    { "blk.1x.y", -1, NULL },
    { "blk.1", -1, NULL },
    { "blk..x", -1, NULL },
    { "blk.", -1, NULL },
    { "blk", -1, NULL },
    { "", -1, NULL },
    { "BLK.1.x", -1, NULL },
    { "enc.blk.1.x", -1, NULL },
    { "output.weight", -1, NULL },
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gguf_str name = gg_str_z(cases[i].name);
        const char *want = cases[i].rest ? cases[i].rest : name.data;
        struct gguf_str rest;
        int64_t layer = gguf_layer_from_name(name, &rest);
        ok(layer == cases[i].layer && gg_str_eqz(rest, want) &&
               gguf_layer_from_name(name, NULL) == layer,
           "'%s' belongs to layer %" PRId64, cases[i].name, cases[i].layer);
    }
    /* counted strings: memory after them is not part of the name */
    const struct gguf_str cut = { "blk.12.x", 5 }, dot = { "blk.12.x", 7 };
    ok(gguf_layer_from_name(cut, NULL) == -1 &&
           gguf_layer_from_name(dot, NULL) == 12,
       "no byte after the name is read");

    struct gguf_str name = GG_STR("dec.blk.3.x"), same = name;
    ok(gg_name_cut_index(&same, "enc.blk.") == -1 && same.data == name.data &&
           same.size == name.size &&
           gg_name_cut_index(&name, "dec.blk.") == 3 && gg_str_eqz(name, "x"),
       "other beginnings are cut off likewise");
    return done_testing();
}
