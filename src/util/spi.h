/*
 * spi.h
 *	  SQL statements that are parsed and planned once per backend.
 */
#ifndef TQ_SPI_H
#define TQ_SPI_H

#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/array.h"
#include "utils/snapshot.h"

#include "slugid.h"

/*
 * A statement, as static data.  The array `types` ends at the first 0.
 * TQ_SLUGID stands for tq.slugid, and TQ_SLUGIDS for an array of it, whose Oids
 * are looked up when the statement is prepared.
 */
#define TQ_SLUGID ((Oid) 1)
#define TQ_SLUGIDS ((Oid) 2)
#define TQ_MAX_ARGS 24

typedef struct TqStatement
{
	const char *sql;
	Oid types[TQ_MAX_ARGS + 1];
	struct _SPI_plan *plan;
} TqStatement;

#define TQ_STATEMENT(sql_, ...)                                               \
	{                                                                         \
		.sql = (sql_), .types = { __VA_ARGS__ }                               \
	}

extern void tq_spi_init(void);
extern void tq_spi_require_writable(void);
extern void tq_spi_open(bool read_only);
extern void tq_spi_open_at(Snapshot snapshot);
extern void tq_spi_close(void);
extern void tq_spi_become_owner(void);
extern Oid tq_spi_caller(void);
extern bool tq_spi_is_reading(void);
extern uint64 tq_spi_read_since(void);
extern Snapshot tq_spi_snapshot(void);
extern uint64 tq_spi_run(TqStatement *statement, const Datum *values,
						 const char *nulls);
extern Datum tq_spi_query_as(Oid role, const char *sql, bool *isnull);
extern bool tq_spi_exists(TqStatement *statement, const Datum *values);
extern int64 tq_spi_run_int64(TqStatement *statement, const Datum *values,
							  int64 if_none);
extern int64 *tq_spi_run_ids(TqStatement *statement, const Datum *values,
							 int *found);

/* Reads a row into a struct. */
typedef void TqReader(TupleTableSlot *slot, void *row);

extern bool tq_spi_read(TqStatement *statement, const Datum *values,
						TqReader *read, void *row);
extern void *tq_spi_read_all(TqStatement *statement, const Datum *values,
							 TqReader *read, Size size, int *found);

typedef struct PortalData *TqRows;

extern TqRows tq_spi_rows_open(TqStatement *statement, const Datum *values);
extern uint64 tq_spi_rows_fetch(TqRows cursor, int max);
extern void tq_spi_rows_close(TqRows cursor);
extern TupleTableSlot *tq_spi_slot(void);
extern void tq_spi_store(TupleTableSlot *slot, uint64 row);
extern void tq_spi_free_result(void);
extern void *tq_spi_keep(const void *varlena);

/* The parameters of a statement, as an array. */
#define TQ_VALUES(...) ((const Datum[]){__VA_ARGS__})

/* Array parameters. */
extern Datum tq_array_int64(const int64 *values, int n);
extern Datum tq_array_int32(const int32 *values, int n);
extern Datum tq_array_bool(const bool *values, int n);
extern Datum tq_array_time(const TimestampTz *values, int n);
extern Datum tq_array_slugid(const TqSlug *values, int n);
extern Datum tq_array_text(char *const *values, int n);
extern char **tq_texts_of_array(ArrayType *array, int *n);

/* Builds an array parameter from one field of an array of structs. */
#define TQ_COLUMN(rows, n, type, function, field, into)                       \
	do                                                                        \
	{                                                                         \
		type *column = palloc(sizeof(type) * (n));                            \
		for (int i = 0; i < (n); i++)                                         \
			column[i] = (type) (rows)[i].field;                               \
		into = function(column, n);                                           \
	} while (0)

#endif /* TQ_SPI_H */
