/*
 * grant_table.h
 *	  Rows of tq_internal.scope_grant: the scopes of roles.
 */
#ifndef TQ_GRANT_TABLE_H
#define TQ_GRANT_TABLE_H

typedef struct TqGrant
{
	Oid role; /* may have been dropped */
	char *scope;
} TqGrant;

extern uint64 tq_grants_generation(void);
extern void tq_grants_watch(void);
extern void tq_grants_changed(void);
extern TqGrant *tq_grants_all(int *found);
extern void tq_grants_insert(Oid role, char *const *scopes, int n);
extern void tq_grants_delete(Oid role, char *const *scopes, int n);
extern uint64 tq_grants_delete_of_dropped_roles(void);

#endif /* TQ_GRANT_TABLE_H */
