package config

import (
	"net/url"

	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/lifetime"
)

// The paths of the optional endpoints.
const (
	ImageReviewPath = "/imagereview"
	DataVerifyPath  = "/externaldata/verify"
	DataMutatePath  = "/externaldata/mutate"
	APIPath         = "/api/v1/verify"
)

// Paths are the active endpoints: those of the API server's webhooks, and the enabled optional
// ones.
func (d Endpoints) Paths() []string {
	list := []string{configuration.MutatePath, configuration.ValidatePath, configuration.DocumentsPath,
		configuration.ShadowPath, configuration.ShadowDocumentsPath, configuration.ProbePath}
	if d.ImageReview {
		list = append(list, ImageReviewPath)
	}
	if d.ExternalData {
		list = append(list, DataVerifyPath, DataMutatePath)
	}
	if d.API.IsOpen() {
		list = append(list, APIPath)
	}
	return list
}

// Paths are the active endpoints of a process with admission.
func (c *Configuration) Paths() []string {
	list := c.Endpoints.Paths()
	if c.HasLifetimes() {
		list = append(list, lifetime.Path)
	}
	return list
}

// HostOf returns the host of a URL; empty where there is none.
func HostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}
