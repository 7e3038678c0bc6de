// Package cleanup deletes existing objects: those that policies select at the times of their
// schedules, and those whose label for their lifetime has ended.
//
// One replica at a time runs the Controller. A wrong deletion is an outage, so each step errs on the
// side of keeping:
//
//   - A run is recorded, with a precondition on the version of the record, before its first deletion.
//     After a crash or a change of leader the next leader continues it, and a former leader that
//     still works fails to reserve further deletions. A schedule that was missed for at most an hour
//     runs once, an older one not at all. A policy that is new or changed begins with its next time.
//   - Each object is read again and decided again immediately before its deletion, which names the
//     UID and the version that were decided: an object that was replaced or changed stays.
//   - A run deletes a limited number of objects, and stops when its policy changes.
//   - An object whose rule could not be evaluated stays and is reported.
//   - A label for the lifetime (package policy/ttl) counts only with the grant of the admission
//     webhook, which asks whether the user may delete the object.
//
// Lists are read in pages, and no objects are kept. The rules and the protection are those of package
// policy/deletion. Deletions follow DeleteOptions of the Kubernetes API, meta/v1.
package cleanup
