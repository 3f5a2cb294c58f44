/* SPDX-License-Identifier: MIT */
/* fuzz_check.c - findings of every check on any file that opens, and on the
 * model in it */
#include "config.h"
#include "gguf/verify.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/projectors.h"

#include <string.h>

static bool check_finding(void *user, const struct gguf_finding *f)
{
    const size_t *size = user;
    MUST(f->message[0] && f->code[0]);
    MUST(f->offset <= *size || f->offset == GGUF_NO_OFFSET);
    for (const char *p = f->message; *p; p++)
        MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_file *f;
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    p.payload = true;
    if (gguf_file_open_memory(&f, data, size, NULL, NULL) != GGUF_OK)
        return 0;
    MUST(gguf_file_verify(
             f, &p, (struct gguf_finding_callback){ check_finding, &size },
             NULL) == GGUF_OK);
    p.payload = false;
    p.quick = true;
    MUST(gguf_file_verify(
             f, &p, (struct gguf_finding_callback){ check_finding, &size },
             NULL) == GGUF_OK);
    gguf_file_close(f);
    return 0;
}

void fuzz_make_seeds(void)
{
    seed_files("", 0, "", 0);
    for (const struct fix_model *x = fix_models; x->name; x++)
        x->make(new_seed());
    for (size_t i = 0; put_projector(new_seed(), i); i++) {
    }
    for (int type = 0; put_groups(new_seed(), type); type++) {
    }
}
