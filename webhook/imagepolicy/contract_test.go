package imagepolicy_test

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

// TestContract asks as the API server's plugin does: with its codec, by client-go's
// REST client, reading the answer into the object that was sent.
func TestContract(t *testing.T) {
	h := endpointtest.NewEnv(t)
	good, bad := testkit.Must(h.Signed("good"))(t), h.Build("shop/bad", "1", "bad")
	server := httptest.NewTLSServer(endpoint(t, endpointtest.Gate(t, h)))
	t.Cleanup(server.Close)

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	client := testkit.Must(rest.UnversionedRESTClientFor(&rest.Config{
		Host: server.URL, APIPath: "/imagereview", TLSClientConfig: rest.TLSClientConfig{CAData: certificateOf(server)},
		ContentConfig: rest.ContentConfig{NegotiatedSerializer: serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{Serializer: codec})},
	}))(t)
	for _, c := range []struct {
		image   string
		allowed bool
		says    string
	}{{good.ByDigest(), true, ""}, {good.Name, false, "use " + good.Name + "@"}, {bad.ByDigest(), false, "[unsigned]"}} {
		review := &v1alpha1.ImageReview{Spec: v1alpha1.ImageReviewSpec{
			Containers: []v1alpha1.ImageReviewContainerSpec{{Image: c.image}}, Namespace: "shop",
			Annotations: map[string]string{"mine.image-policy.k8s.io/ticket": "1"},
		}}
		result := client.Post().AbsPath("/imagereview").Body(review).Do(t.Context())
		var code int
		result.StatusCode(&code)
		if result.Error() != nil || code != 200 {
			t.Fatalf("%d, %v", code, result.Error())
		}
		if err := result.Into(review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != c.allowed || !strings.Contains(review.Status.Reason, c.says) {
			t.Errorf("%s: %+v", c.image, review.Status)
		}
		for key, value := range review.Status.AuditAnnotations {
			// The plugin puts its prefix before it; what follows is a name of at most 63
			// letters, digits and separators.
			if strings.ContainsFunc(key, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) }) || len(key) > 63 || len(value) > 512 {
				t.Errorf("%q: %q", key, value)
			}
		}
	}
}

func certificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
