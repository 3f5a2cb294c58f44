/* gguf-ppl-no-mpi.c - gguf-ppl-mpi.h in a build without MPI: what --mpi is
 * refused with */
#include "config.h"
#include "tools/gguf-ppl-mpi.h"
#include "tools/common/msg.h"

#include <stdlib.h>

void ppl_mpi_begin(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
}

void ppl_mpi_settle(struct ppl_options *o)
{
    if (!o->mpi)
        return;
    msg_error(NULL, "--mpi: built without MPI: ./configure --with-mpi "
                    "builds gguf-ppl with it");
    exit(MSG_FAILED);
}

bool ppl_mpi_is_helper(void)
{
    return false;
}

bool ppl_mpi_poll(void)
{
    return true;
}

int ppl_mpi_progress(struct ppl_run *r, uint64_t done)
{
    return progress_report(&r->bar, done, done);
}

bool ppl_mpi_share(const struct ppl_share *s)
{
    (void)s;
    return false;
}
