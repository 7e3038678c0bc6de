// Package config reads the settings of the gateway: one strict YAML file of the kind Configuration
// (quaymaster.dev/v1alpha1), with defaults and with checks for contradictions.
// docs/configuration.md is generated from its types.
package config
