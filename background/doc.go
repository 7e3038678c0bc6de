// Package background answers: is what rules about other objects want there, and as
// they want it?
//
// One replica at a time runs its Controller, which watches the triggers of
// policy.Generation and policy.Alteration and brings about what these say. It keeps
// nothing that could be lost: what is to be there is derived from triggers and
// policies, and what is there because of a rule says so itself (package record). So
// whoever leads next goes on, and doing a thing twice does it once.
//
//   - An object of a rule with synchronize is put back when it is changed or deleted,
//     follows its trigger and its rule, and goes with them.
//   - An object of any other rule is made if there is none, when its trigger comes or
//     changes.
//   - Objects that an Alteration changes are changed when its trigger comes or changes.
//
// Triggers that were there before their rule count only where the rule says so. What
// fails is told, and tried again ever more rarely. What may be made and changed is
// RBAC's to say, and every write goes by the webhooks like anybody's.
package background
