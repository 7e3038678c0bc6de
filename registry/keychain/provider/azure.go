package provider

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/containers/azcontainerregistry"
	"github.com/google/go-containerregistry/pkg/authn"
)

// azureTimeout bounds one exchange of an Entra ID token for a registry's refresh token, the
// attempts included.
const azureTimeout = 30 * time.Second

// azureCredential exchanges the environment's Entra ID identity for a refresh token of an Azure
// container registry (API version 2021-07-01). The identity is the first of: a client secret or
// certificate in the environment, a federated token (AZURE_FEDERATED_TOKEN, or the file of a
// workload identity), the managed identity of the machine. Azure's libraries cache the Entra ID
// token and renew it.
type azureCredential struct {
	transport policy.Transporter // nil: the library's own
	env       func(string) string
	mu        sync.Mutex
	found     map[string]azcore.TokenCredential // by the registry's domain
}

// azureCloud returns the cloud of a registry by its domain, which ends the host: the registry of
// another party, registry.azurecr.io.evil.test, receives no token (compare GHSA-44f7-5fj5-h4px).
// Germany's cloud is part of the public one since 2021.
func azureCloud(host string) (domain string, of cloud.Configuration, ok bool) {
	for _, known := range []struct {
		domain string
		cloud  cloud.Configuration
	}{
		{".azurecr.io", cloud.AzurePublic}, {".azurecr.de", cloud.AzurePublic},
		{".azurecr.cn", cloud.AzureChina}, {".azurecr.us", cloud.AzureGovernment},
	} {
		if strings.HasSuffix(host, known.domain) {
			return known.domain, known.cloud, true
		}
	}
	return "", cloud.Configuration{}, false
}

// Resolve implements authn.Keychain. Without an identity the registry is read anonymously, as with
// the credential helpers of the other clouds.
func (a *azureCredential) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return a.ResolveContext(context.Background(), target)
}

// ResolveContext implements authn.ContextKeychain.
func (a *azureCredential) ResolveContext(ctx context.Context, target authn.Resource) (authn.Authenticator, error) {
	host := target.RegistryStr()
	domain, of, ok := azureCloud(host)
	if !ok {
		return authn.Anonymous, nil
	}
	ctx, cancel := context.WithTimeout(ctx, azureTimeout)
	defer cancel()
	token, err := a.refreshToken(ctx, host, domain, of)
	if err != nil {
		return authn.Anonymous, nil // a public image needs no identity: the registry's refusal is the error
	}
	return authn.FromConfig(authn.AuthConfig{Username: "<token>", IdentityToken: token}), nil
}

func (a *azureCredential) refreshToken(ctx context.Context, host, domain string, of cloud.Configuration) (string, error) {
	// One attempt more: a registry that does not answer must not use up the time of an admission.
	options := azcore.ClientOptions{Cloud: of, Transport: a.transport, Retry: policy.RetryOptions{MaxRetries: 1}}
	identity, err := a.identity(domain, options)
	if err != nil {
		return "", err
	}
	audience := of.Services[azcontainerregistry.ServiceName].Audience
	access, err := identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{audience + "/.default"}})
	if err != nil {
		return "", err
	}
	client, err := azcontainerregistry.NewAuthenticationClient("https://"+host, &azcontainerregistry.AuthenticationClientOptions{ClientOptions: options})
	if err != nil {
		return "", err
	}
	fields := &azcontainerregistry.AuthenticationClientExchangeAADAccessTokenForACRRefreshTokenOptions{AccessToken: &access.Token}
	if tenant := a.env("AZURE_TENANT_ID"); tenant != "" {
		fields.Tenant = &tenant
	}
	answer, err := client.ExchangeAADAccessTokenForACRRefreshToken(ctx, azcontainerregistry.PostContentSchemaGrantTypeAccessToken, host, fields)
	if err != nil {
		return "", err
	}
	if answer.RefreshToken == nil {
		return "", errors.New("the registry returned no refresh token")
	}
	return *answer.RefreshToken, nil
}

// identity returns the credential of a cloud, the same one each time: it caches its tokens.
func (a *azureCredential) identity(domain string, options azcore.ClientOptions) (azcore.TokenCredential, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.found[domain]; found != nil {
		return found, nil
	}
	if a.env("AZURE_AUTHORITY_HOST") != "" {
		options.Cloud.ActiveDirectoryAuthorityHost = "" // azidentity reads the variable
	}
	var chain []azcore.TokenCredential
	add := func(made azcore.TokenCredential, err error) {
		if err == nil { // without its variables a credential cannot be made
			chain = append(chain, made)
		}
	}
	environment, err := azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options})
	add(environment, err)
	if token := a.env("AZURE_FEDERATED_TOKEN"); token != "" {
		federated, err := azidentity.NewClientAssertionCredential(a.env("AZURE_TENANT_ID"), a.env("AZURE_CLIENT_ID"),
			func(context.Context) (string, error) { return token, nil }, &azidentity.ClientAssertionCredentialOptions{ClientOptions: options})
		add(federated, err)
	}
	workload, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options})
	add(workload, err)
	managed := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if id := a.env("AZURE_CLIENT_ID"); id != "" {
		managed.ID = azidentity.ClientID(id)
	}
	machine, err := azidentity.NewManagedIdentityCredential(managed)
	add(machine, err)
	found, err := azidentity.NewChainedTokenCredential(chain, nil)
	if err != nil {
		return nil, err
	}
	if a.found == nil {
		a.found = map[string]azcore.TokenCredential{}
	}
	a.found[domain] = found
	return found, nil
}
