package rulecontext

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// imageData is an entry with a registry's data for an image.
type imageData struct {
	reference   *variable.Template
	expression  *variable.Expression
	credentials policy.Credentials
	images      Images
}

func (c compiler) image(doc *imageDocument, path string) (loader, error) {
	if doc.Reference == "" {
		return nil, field.Fail(path+".reference", "is empty")
	}
	d := &imageData{images: c.Images}
	var errs [3]error
	d.reference, errs[0] = c.template(doc.Reference, path+".reference")
	ofImages := c
	ofImages.Engine = c.Engine.Foreign() // it is evaluated on data from the image
	d.expression, errs[1] = ofImages.expression(doc.JMESPath, path+".jmesPath")
	d.credentials, errs[2] = c.credentials(doc.ImageRegistryCredentials, path+".imageRegistryCredentials")
	return d, errors.Join(errs[:]...)
}

func (c compiler) credentials(doc *credentialsDocument, path string) (policy.Credentials, error) {
	if doc == nil {
		return policy.Credentials{}, nil
	}
	out := policy.Credentials{AllowInsecure: doc.AllowInsecureRegistry, Providers: doc.Providers}
	var errs []error
	for i, provider := range doc.Providers {
		if !slices.Contains([]string{"default", "amazon", "azure", "google", "github"}, provider) {
			errs = append(errs, field.Fail(path+".providers["+strconv.Itoa(i)+"]", "unknown provider %q: want default, amazon, azure, google or github", provider))
		}
	}
	for i, secret := range doc.Secrets {
		place := path + ".secrets[" + strconv.Itoa(i) + "]"
		namespace, name, qualified := strings.Cut(secret, "/")
		if !qualified {
			namespace, name = c.SecretNamespace, secret
			if c.Namespace != "" {
				namespace = c.Namespace
			}
		}
		if name == "" || namespace == "" || strings.Contains(name, "/") {
			errs = append(errs, field.Fail(place, "%q: want name or namespace/name", secret))
		}
		if c.Namespace != "" && namespace != c.Namespace {
			errs = append(errs, field.Fail(place, "a Policy in namespace %s cannot use a Secret of namespace %s: use a ClusterPolicy", c.Namespace, namespace))
		}
		out.Secrets = append(out.Secrets, namespace+"/"+name)
	}
	return out, errors.Join(errs...)
}

func (d *imageData) reads(r *reads) {
	r.template(d.reference)
	r.expression(d.expression, true)
}

func (d *imageData) load(ctx context.Context, data variable.Context) (any, error) {
	value, err := d.reference.Execute(data)
	if err != nil {
		return nil, err
	}
	reference, ok := value.(string)
	if !ok || reference == "" {
		return nil, fmt.Errorf("the reference %v is no text", value)
	}
	if d.images == nil {
		return nil, fmt.Errorf("image %s: no registry is asked here", reference)
	}
	answered := waittime.Begin(ctx)
	found, err := d.images.ImageData(ctx, reference, d.credentials)
	answered()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", reference, err)
	}
	return selected(d.expression, found, data)
}
