// Package conversions asks: does a policy in CEL decide as the policy from which it was converted?
//
// All policies of our own in this repository are converted and compared, and those of other projects where
// QUAYMASTER_SAMPLES points and in the folder library beside it. QUAYMASTER_CONVERT_OBJECTS is the number of generated
// objects for all policies together, QUAYMASTER_CONVERT_MUTANTS that of changed results: 250, or all with QUAYMASTER_LONG.
package conversions
