/*
 * xact_end.h
 *	  What the modules do when a transaction ends, in one order.
 */
#ifndef TQ_XACT_END_H
#define TQ_XACT_END_H

/*
 * The part of a module; NULL: nothing to do.  None of these functions raises an
 * error or allocates memory.  A prepared transaction has neither commit nor abort, because it
 * ends in another session, where none of them is called.
 */
typedef struct TqXactEnd
{
	void (*before_commit)(void);
	void (*commit)(void); /* its rows are visible */
	/*
	 * Aborted: the transaction, if id is TopSubTransactionId, or that
	 * subtransaction, after those within it.  Its row locks are free.
	 */
	void (*abort)(SubTransactionId id);
	void (*reset)(void); /* after commit or abort, or when it is prepared */
	void (*before_prepare)(void); /* may raise an error */
	void (*prepared)(void);
	void (*subcommit)(SubTransactionId id, SubTransactionId parent);
} TqXactEnd;

extern void tq_xact_end_init(const TqXactEnd *const *parts, int n);

#endif /* TQ_XACT_END_H */
