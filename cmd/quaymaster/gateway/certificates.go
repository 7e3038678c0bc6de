package gateway

import (
	"cmp"
	"log/slog"
	"net"
	"slices"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// newCertificates selects the source of the certificate. in is nil without a cluster.
func newCertificates(c config.Configuration, in *lookups.Cluster, group *gateway.Group, log *slog.Logger) (*certificates.Certificates, error) {
	store, where, err := certificateStore(c, in)
	if err != nil {
		return nil, err
	}
	settings := certificates.Config{Own: certificate.OwnConfig{
		Store: store, Where: where, Names: servingNames(c), Log: log, Follows: !c.Has(config.RoleAdmission), // processes with the role create them
	}}
	if c.Certificate.CertificateFile != "" {
		settings.Files = &certificate.FilesConfig{
			Certificate: c.Certificate.CertificateFile, Key: c.Certificate.KeyFile, CA: c.Certificate.CAFile, Log: log,
		}
		if in != nil {
			// Without it the API server and the other replicas would refuse every connection.
			settings.Files.Names = []string{knownAs(c)}
		}
	}
	return certificates.Open(settings, group)
}

func certificateStore(c config.Configuration, in *lookups.Cluster) (certificate.Store, string, error) {
	switch {
	case in != nil:
		return certificates.NewSecretStore(in.Client.Typed.CoreV1().Secrets(c.Namespace), c.Certificate.Secret),
			"Secret " + c.Namespace + "/" + c.Certificate.Secret, nil
	case c.Certificate.Folder != "":
		folder, err := certificate.NewFolder(c.Certificate.Folder)
		return folder, "the folder " + c.Certificate.Folder, err
	}
	return &certificate.Memory{}, "memory", nil
}

// serviceName is the gateway's name within the cluster.
func serviceName(c config.Configuration) string {
	return c.Webhooks.Service + "." + c.Namespace + ".svc"
}

// knownAs is the gateway's name for the API server.
func knownAs(c config.Configuration) string {
	return cmp.Or(config.HostOf(c.Webhooks.URL), serviceName(c))
}

// servingNames are all names of the gateway.
func servingNames(c config.Configuration) []string {
	service := serviceName(c)
	names := append([]string{service, service + ".cluster.local"}, c.Certificate.Names...)
	host, _, _ := net.SplitHostPort(c.Listen.Address) // the configuration was checked
	if address := net.ParseIP(host); host != "" && (address == nil || !address.IsUnspecified()) {
		names = append(names, host)
	}
	if c.Standalone {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	if host := config.HostOf(c.Webhooks.URL); host != "" {
		names = append(names, host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
