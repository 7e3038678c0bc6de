// Package background applies policy rules to other objects than the one of the request: generate
// rules, and mutations of existing objects.
//
// One replica at a time runs its Controller, which watches the triggers of policy.Generation and
// policy.Alteration and applies these. It holds no state that could be lost: the required objects
// are derived from triggers and policies, and a generated object records its rule and trigger
// (package record). Every operation is idempotent, so the next leader can continue.
//
//   - A generated object of a rule with synchronize is restored when it is changed or
//     deleted, follows its trigger and its rule, and is deleted with them.
//   - A generated object of any other rule is created if it is missing, when its trigger
//     is created or changed.
//   - Targets of an Alteration are changed when its trigger is created or changed.
//   - A rule with DELETE applies to a trigger that was deleted, in the last state that its watch returned;
//     the next leader continues from the saved position of the watch.
//   - A rule with a subresource applies to requests for it that the states of the object show (package
//     policy/subresource).
//
// Triggers that existed before their rule count only where the rule requests it. Errors are
// reported, and retried with increasing pauses. RBAC limits the objects that may be created and
// changed, and every write passes the admission webhooks.
package background
