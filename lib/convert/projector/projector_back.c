/* SPDX-License-Identifier: MIT */
/* projector_back.c - inverses of keys that projectors of several families have
 */
#include "config.h"
#include "convert/projector/projector_row.h"

void gg_projector_put_gelu(struct gg_back_maker *m)
{
    gg_back_put_word(m, "vision.hidden_act", "gelu");
}

void gg_projector_put_silu(struct gg_back_maker *m)
{
    gg_back_put_word(m, "vision.hidden_act", "silu");
}

void gg_projector_put_layers(struct gg_back_maker *m)
{
    gg_back_put_num(m, "vision.num_hidden_layers",
                    num_of(&m->keys, "vision.block_count"));
}

void gg_projector_put_image_tokens(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    const double side = floor(num_of(keys, "vision.image_size") /
                              num_of(keys, "vision.patch_size"));
    const double scale = num_or(keys, "vision.projector.scale_factor", 4);
    const double tokens = floor(side / scale);
    gg_back_put_num(m, "image.image_seq_length", tokens * tokens);
}

void gg_projector_put_mlp_ratio(struct gg_back_maker *m)
{
    gg_back_put_num(m, "vision.mlp_ratio",
                    num_of(&m->keys, "vision.feed_forward_length") /
                        num_of(&m->keys, "vision.embedding_length"));
}

void gg_projector_put_inverse(struct gg_back_maker *m, const char *name)
{
    gg_back_put_num(m, name,
                    1 / num_of(&m->keys, "vision.projector.scale_factor"));
}

double gg_projector_count_tensor(const struct gg_back_maker *m,
                                 const char *name, unsigned dim)
{
    size_t at;
    if (!gg_source_find(&m->b->source, name, &at))
        return NAN;
    const struct gguf_tensor_info *t =
        gg_source_tensor(&m->b->source, at).info;
    return dim < t->n_dims ? (double)t->ne[dim] : NAN;
}

void gg_projector_put_pinpoints_back(struct gg_back_maker *m)
{
    const char *name = "vision.image_grid_pinpoints";
    const size_t n = gg_hf_config_list_len(&m->keys, name);
    json_t *list = json_array();
    for (size_t i = 0; i + 1 < n; i += 2) {
        json_t *pair = json_array();
        for (size_t k = 2; k--;)
            json_array_append_new(
                pair, gg_back_number_to_json(
                          num_at(&m->keys, name, (int64_t)(i + k))));
        json_array_append_new(list, pair);
    }
    if (n)
        gg_back_put(m->root, "image_grid_pinpoints", list);
    else
        json_decref(list);
}
