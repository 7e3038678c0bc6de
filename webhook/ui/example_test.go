package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

func Example() {
	handler, err := ui.New(ui.Config{Inventory: filled(&testing.T{})}, ui.WithoutTokens())
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost:8001/api/v1/images?signer=abcdef0123456789", nil)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var list struct {
		Total int
		Items []inventory.Image
	}
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Code, list.Total, list.Items[0].Reference, list.Items[0].Verdict)
	// Output: 200 1 registry.example/shop/web:1 allowed
}
