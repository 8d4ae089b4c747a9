/*
 * run_detail_table.h
 *	  Rows of tq_internal.run_detail: attributes that only some runs have.
 */
#ifndef TQ_RUN_DETAIL_TABLE_H
#define TQ_RUN_DETAIL_TABLE_H

#include "utils/jsonb.h"

#include "run_table.h"

extern void tq_details_write(const TqRun *runs, int n);
extern void tq_details_read(TqRun *runs, int n);
extern void tq_details_read_errors(TqRun *runs, int n);
extern Jsonb *tq_detail_result(const TqRun *run);

#endif /* TQ_RUN_DETAIL_TABLE_H */
