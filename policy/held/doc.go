// Package held answers: which version of a policy is in force while a newer one waits to
// be tried against what runs?
//
// A Ledger knows which version of each policy was approved last. A version that denies and
// is not approved is held: what was approved before stays in force, and a policy that is
// new only audits. So a change is delayed and opens no window. A policy that is made long
// after one of its name went is new. Whoever wants it otherwise
// writes an annotation (Annotation) into the policy, which who may write the policy may.
//
// Everything here is pure: package scan/trial tries, and the gateway keeps the Ledger.
package held
