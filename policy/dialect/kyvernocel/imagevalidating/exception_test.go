package imagevalidating_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// TestExceptionsRead: the policies that an exception applies to.
func TestExceptionsRead(t *testing.T) {
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	compiler := newCompiler()
	for _, c := range []struct{ reason, text, want string }{
		{"a policy of the cluster", exception, "default ImageValidatingPolicy/signed"},
		{"in the namespace that there is always", edit(exception, ", namespace: default", ""), "default ImageValidatingPolicy/signed"},
		{"in another namespace", edit(exception, "namespace: default", "namespace: shop"), "shop ImageValidatingPolicy/signed"},
		{"a policy of its namespace", edit(exception, "kind: Image", "kind: NamespacedImage"), "default NamespacedImageValidatingPolicy/default/signed"},
		{"which is named in full", edit(exception, "kind: Image", "kind: NamespacedImage", "name: signed", "name: shop/signed"), "default NamespacedImageValidatingPolicy/shop/signed"},
		{"a policy of the cluster in a namespace", edit(exception, "name: signed", "name: shop/signed"), "spec.policyRefs[0].name"},
		{"a mutation, whatever its values and images are", edit(exception, "kind: ImageValidating", "kind: Mutating"), "default MutatingPolicy/signed"},
		{"another kind", edit(exception, "kind: ImageValidatingPolicy", "kind: NamespacedDeletingPolicy"), "default NamespacedDeletingPolicy/default/signed"},
		{"why", edit(exception, "{name: leave", "{annotations: {quaymaster.dev/reason: ' it is old '}, name: leave"), "default ImageValidatingPolicy/signed"},
		{"of no version that there is", edit(exception, "kyverno.io/v1", "kyverno.io/v3"), "is no exception of policies.kyverno.io"},
		{"another kind of document", edit(exception, "kind: PolicyException", "kind: ClusterPolicy"), "is no exception of policies.kyverno.io"},
		{"without a name", edit(exception, "name: leave, ", ""), "metadata.name"},
		{"an end by an annotation, which has no effect beside expiresAt", edit(exception, "{name: leave", "{annotations: {quaymaster.dev/expires: '2027-01-31T00:00:00Z'}, name: leave"), "metadata.annotations[quaymaster.dev/expires]: unknown annotation"},
		{"annotations that cannot be read", edit(exception, "{name: leave", "{annotations: {a: 1}, name: leave"), "metadata"},
		{"the mode that there is", exception + "  evaluationMode: Kubernetes\n", "default ImageValidatingPolicy/signed"},
		{"reported as skipped", exception + "  reportResult: skip\n", "default ImageValidatingPolicy/signed"},
		{"words for reports", exception + "  properties: {ticket: '7'}\n", "default ImageValidatingPolicy/signed map[ticket:7]"},
		{"a time", exception + "  expiresAt: '2027-01-31T00:00:00Z'\n", "default ImageValidatingPolicy/signed until 2027-01-31"},
		{"no time", exception + "  expiresAt: null\n", "default ImageValidatingPolicy/signed"},
		{"the beginning of time", exception + "  expiresAt: '0001-01-01T00:00:00Z'\n", "spec.expiresAt: is empty"},
		{"a time that is none", exception + "  expiresAt: soon\n", "spec.expiresAt: \"soon\" is no time"},
		{"an image", exception + "  images: [a.example/b]\n", "default ImageValidatingPolicy/signed a.example/b:latest"},
		{"a tag", exception + "  images: [' a.example/b:1 ']\n", "default ImageValidatingPolicy/signed a.example/b:1"},
		{"a digest, and the tag beside it", exception + "  images: ['a.example/b:1" + digest + "']\n", "default ImageValidatingPolicy/signed a.example/b" + digest},
		{"an image in short", exception + "  images: [nginx]\n", "default ImageValidatingPolicy/signed docker.io/library/nginx:latest"},
		{"no image", exception + "  images: ['::']\n", "spec.images[0]"},
		{"a pattern", exception + "  images: ['a.example/*']\n", "default ImageValidatingPolicy/signed a.example/*"},
		{"of every registry", exception + "  images: ['*']\n", "default ImageValidatingPolicy/signed *"},
		{"of some registries", exception + "  images: ['*.example/b:*']\n", "default ImageValidatingPolicy/signed *.example/b:*"},
		{"of registries that begin so", exception + "  images: ['a*/b:*']\n", "default ImageValidatingPolicy/signed a*/b:*"},
		{"of this machine", exception + "  images: ['localhost/b:*']\n", "default ImageValidatingPolicy/signed localhost/b:*"},
		{"of a port", exception + "  images: ['registry:5000/b:*']\n", "default ImageValidatingPolicy/signed registry:5000/b:*"},
		{"of no registry", exception + "  images: ['org/b:*']\n", "which begin with their registry"},
		{"of a name alone", exception + "  images: ['nginx:*']\n", "which begin with their registry"},
		{"without a tag", exception + "  images: ['*.example/b']\n", "which have a tag or a digest"},
		{"of alternatives", exception + "  images: ['a.example/{b,c}:*']\n", "write an entry for each alternative"},
		{"that nothing can match", exception + "  images: ['https://a.example/*']\n", "can match no image reference: leave out the scheme"},
		{"texts for another kind of policy", edit(exception, "kind: ImageV", "kind: V") + "  images: ['nginx:*']\n", "default ValidatingPolicy/signed nginx:* pods [nginx:*] []"},
		{"of its kind for a namespace", edit(exception, "kind: ImageV", "kind: NamespacedV") + "  allowedValues: [a]\n", "default NamespacedValidatingPolicy/default/signed pods [] [a]"},
		{"values for a mutation", edit(exception, "kind: ImageValidating", "kind: Mutating") + "  allowedValues: [a]\n", "default MutatingPolicy/signed pods [] [a]"},
		{"images for one of a namespace", edit(exception, "kind: ImageValidating", "kind: NamespacedMutating") + "  images: [a]\n", "default NamespacedMutatingPolicy/default/signed a pods [a] []"},
		{"nothing for it", edit(exception, "kind: ImageV", "kind: V"), "default ValidatingPolicy/signed"},
		{"values for one that reads none", edit(exception, "kind: ImageValidating", "kind: Deleting") + "  allowedValues: [a]\n", "default DeletingPolicy/signed"},
		{"a generating policy", edit(exception, "kind: ImageValidating", "kind: Generating"), "default GeneratingPolicy/signed"},
	} {
		var got string
		e, err := compiler.CompileException([]byte(c.text), "test.yaml")
		if err == nil {
			got = e.Namespace
			for _, r := range e.Rules {
				got += " " + r.Kind + "/" + r.Policy
				if !slices.Equal(r.Rules, []string{"*"}) {
					t.Errorf("%s: not every rule: %+v", c.reason, r)
				}
			}
			for _, i := range e.Images {
				got += " " + i
			}
			for _, p := range e.PodSecurity {
				got += fmt.Sprintf(" pods %v %v", p.Images, p.Values)
			}
			if !e.Expires.IsZero() {
				got += " until " + e.Expires.Format(time.DateOnly)
			}
			if len(e.Properties) > 0 {
				got += fmt.Sprintf(" %v", e.Properties)
			}
			if e.Scope != nil || e.Name != "leave" || e.Source != "test.yaml" || e.Hash == "" {
				t.Errorf("%s: %+v", c.reason, e)
			}
		} else {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestBoundsOfExceptions: of each list as many as there may be, and one more.
func TestBoundsOfExceptions(t *testing.T) {
	values := edit(exception, "kind: ImageV", "kind: V")
	list := func(n int, entry string) string { return "[" + strings.Repeat(entry+", ", n-1) + entry + "]" }
	for _, c := range []struct {
		reason string
		text   func(n int) string
		want   string
	}{
		{"policies", func(n int) string {
			return edit(exception, "[{name: signed, kind: ImageValidatingPolicy}]", list(n, "{name: signed, kind: ImageValidatingPolicy}"))
		}, "spec.policyRefs: want 1 to 200 policies, found 201"},
		{"images", func(n int) string { return exception + "  images: " + list(n, "a.example/b") + "\n" }, "spec.images: 201 are more than 200"},
		{"texts", func(n int) string { return values + "  images: " + list(n, "a") + "\n" }, "spec.images: 201 are more than 200"},
		{"values", func(n int) string { return values + "  allowedValues: " + list(n, "a") + "\n" }, "spec.allowedValues: 201 are more than 200"},
	} {
		for _, n := range []int{200, 201} {
			_, err := newCompiler().CompileException([]byte(c.text(n)), "test.yaml")
			if n == 200 && err != nil || n > 200 && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %d: %.300v", c.reason, n, err)
			}
		}
	}
}

// TestObjectOfExceptedImages: an exception for images leaves the images alone, and not the object,
// however many of its images it lists.
func TestObjectOfExceptedImages(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	const ownNetwork = "!object.spec.?hostNetwork.orValue(false)"
	images, whole := exception+"  images: [HOST/org/bad:1]\n", strings.Replace(exception, "name: leave", "name: whole", 1)
	beside := with(allSigned) + "  - expression: \"" + ownNetwork + "\"\n"
	failing := with(allSigned) + "  - expression: \"object.metadata.labels.missing == 'a'\"\n"
	of := func(network bool, images ...string) object {
		return object{images: images, spec: map[string]any{"hostNetwork": network}}
	}
	for _, c := range []struct {
		reason string
		object object
		texts  []string
		answer gate.Result
	}{
		{"its validation holds", of(false, bad), []string{beside, images}, gate.Allow},
		{"its validation does not hold", of(true, bad), []string{beside, images}, gate.Deny},
		{"beside another image it holds", of(false, bad, good), []string{beside, images}, gate.Allow},
		{"beside another image it does not hold", of(true, bad, good), []string{beside, images}, gate.Deny},
		{"of a controller it holds", object{kind: "Deployment", images: []string{bad}}, []string{beside, images}, gate.Allow},
		{"of a controller it does not hold", object{kind: "Deployment", images: []string{bad}, spec: map[string]any{"hostNetwork": true}}, []string{beside, images}, gate.Deny},
		{"in one expression with the images it holds", of(false, bad), []string{with(ownNetwork + " && " + allSigned), images}, gate.Allow},
		{"in one expression with the images it does not hold", of(true, bad), []string{with(ownNetwork + " && " + allSigned), images}, gate.Deny},
		{"it cannot be evaluated", of(false, bad), []string{failing, images}, gate.Error},
		{"an image is required of the object", of(false, bad), []string{with("images.containers.exists(i, verifyImageSignatures(i, [attestors.ours]) > 0)"), images}, gate.Allow},
		{"the images' texts are the object's", of(false, bad), []string{with("object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)"), images}, gate.Allow},
		{"the exception is for the object", of(true, bad), []string{beside, whole}, gate.Allow},
		{"exceptions are for both", of(true, bad), []string{beside, images, whole}, gate.Allow},
		{"nothing is about the object", of(true, bad), []string{with(allSigned), images}, gate.Allow},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, c.object.request(t), c.texts...), c.reason, c.answer, "")
		})
	}
}
