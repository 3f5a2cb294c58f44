/* SPDX-License-Identifier: MIT */
/* check-malformed-model.c - models of many architectures with one wrong key or
 * tensor */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/file.h"
#include "tests/model/gen.h"
#include "tests/model/findings.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

static const char *const skeletons[] = {
    "bloom",     "command-r", "deepseek2", "falcon",     "gemma",   "gemma2",
    "gemma3",    "glm4",      "gpt-oss",   "gpt2",       "gptneox", "llama",
    "llama-moe", "mistral3",  "olmo2",     "phi2",       "phi3",    "qwen2",
    "qwen3",     "qwen3moe",  "stablelm",  "starcoder2",
};

/* Find findings after replacing n bytes at off. The file is restored. */
static void with_bytes(uint8_t *data, size_t size, uint64_t off,
                       const void *bytes, size_t n, struct findings *s)
{
    uint8_t old[8];
    memcpy(old, data + off, n);
    memcpy(data + off, bytes, n);
    memset(s, 0, sizeof *s);
    findings_in(data, size, NULL, s);
    memcpy(data + off, old, n);
}

/* Increase each hyperparameter that tensor shapes depend on by one. */
static unsigned check_keys(uint8_t *data, size_t size,
                           const struct gguf_file *file, const char *name)
{
    static const char *const keys[] = {
        ".embedding_length", ".vocab_size",
        ".block_count",      ".kv_lora_rank",
        ".q_lora_rank",      ".expert_count",
        ".key_length_mla",   ".feed_forward_length",
        ".value_length_mla", ".expert_feed_forward_length",
    };
    unsigned n = 0;
    for (size_t i = 0; i < gguf_file_n_kv(file); i++) {
        const struct gguf_kv *kv = gguf_file_kv(file, i);
        for (size_t k = 0; k < GG_LEN(keys); k++) {
            size_t len = strlen(keys[k]);
            uint8_t more[4];
            struct findings s;
            if (kv->key.size < len || kv->type != GGUF_VAL_U32 ||
                memcmp(kv->key.data + kv->key.size - len, keys[k], len))
                continue;
            gg_bytes_store32le(more, gg_bytes_load32le(data + kv->off) + 1);
            with_bytes(data, size, kv->off, more, 4, &s);
            if (!s.n_error) {
                /* unused if all layers have experts */
                if (strstr(keys[k], "feed") && strstr(name, "moe"))
                    continue;
                if (strstr(keys[k], "feed") && !strcmp(name, "gpt-oss"))
                    continue;
                printf("# %s: %s + 1 is not noticed\n", name, keys[k]);
                return 0;
            }
            n++;
        }
    }
    return n;
}

/* Rename each tensor: its new name is unknown, or its old one is missing. */
static unsigned check_names(uint8_t *data, size_t size,
                            const struct gguf_file *file, const char *name)
{
    unsigned n_missing = 0;
    for (size_t i = 0; i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
        struct findings s;
        with_bytes(data, size, t->info_off + 8 + t->name.size - 1, "X", 1, &s);
        if (!strstr(s.codes, "extra-tensor")) {
            printf("# %s: tensor %zu: %s\n", name, i, s.codes);
            return 0;
        }
        n_missing += strstr(s.codes, "missing-tensor") != NULL;
    }
    return n_missing;
}

static void check_skeletons(void)
{
    static struct skeleton m;
    for (size_t i = 0; i < GG_LEN(skeletons); i++) {
        const char *name = skeletons[i];
        struct findings s = { .n = 0 };
        struct gguf_file *file;
        size_t size;
        if (!skeleton_open(&m, name))
            abort();
        uint8_t *data = gen_file(&m.g, GGUF_DTYPE_F32, &size);
        findings_in(data, size, NULL, &s);
        if (gguf_file_open_memory(&file, data, size, NULL, NULL))
            abort();
        unsigned n_keys = check_keys(data, size, file, name);
        unsigned n_names = check_names(data, size, file, name);
        ok(!s.n && n_keys > 2 && n_names > gguf_file_n_tensors(file) / 2,
           "%s: no findings but for %u keys + 1, and %u of %zu tensors "
           "gone: %s",
           name, n_keys, n_names, gguf_file_n_tensors(file), s.codes);
        gguf_file_close(file);
        free(data);
        skeleton_close(&m);
    }
}

int main(void)
{
    check_skeletons();
    return done_testing();
}
