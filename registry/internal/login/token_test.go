package login_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/registry/internal/login"
)

// TestATokenOutlivesItsFirstRequest: the caller that fetches leaves, and the
// waiting callers must not fail with it.
func TestATokenOutlivesItsFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := login.NewTokens().ForRepository("app")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := cache.Set(ctx, "reg", auth.SchemeBearer, "k", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", fmt.Errorf("fetch: %w", ctx.Err())
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the first asker got %v", err)
			}
		}()
		synctest.Wait() // the first one fetches
		go func() {
			token, err := cache.Set(t.Context(), "reg", auth.SchemeBearer, "k", func(context.Context) (string, error) { return "token", nil })
			if err != nil || token != "token" {
				t.Errorf("the second asker got %q, %v", token, err)
			}
		}()
		synctest.Wait() // the second one waits for it
		cancel()
		synctest.Wait()
	})
}

// TestAFailedTokenIsSharedByWaitingCallers: a token service that refuses is not
// asked again by everybody.
func TestAFailedTokenIsSharedByWaitingCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := login.NewTokens().ForRepository("app")
		refused, release := errors.New("refused"), make(chan struct{})
		for range 5 {
			go func() {
				_, err := cache.Set(t.Context(), "reg", auth.SchemeBearer, "k", func(context.Context) (string, error) {
					select {
					case <-release:
						t.Error("fetched again")
					default:
						<-release
					}
					return "", refused
				})
				if !errors.Is(err, refused) {
					t.Errorf("got %v", err)
				}
			}()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if _, err := cache.GetToken(t.Context(), "reg", auth.SchemeBearer, "k"); err == nil {
			t.Error("a failure was remembered as a token")
		}
	})
}

func TestTokensAreOfTheirRepository(t *testing.T) {
	tokens := login.NewTokens()
	give := func(context.Context) (string, error) { return "token", nil }
	if _, err := tokens.ForRepository("mine").Set(t.Context(), "reg", auth.SchemeBasic, "", give); err != nil {
		t.Fatal(err)
	}
	if token, err := tokens.ForRepository("mine").GetToken(t.Context(), "reg", auth.SchemeBasic, ""); err != nil || token != "token" {
		t.Errorf("it was forgotten: %q, %v", token, err)
	}
	tests := []struct {
		reason, repository, host, key string
		scheme                        auth.Scheme
	}{
		{"another repository", "theirs", "reg", "", auth.SchemeBasic},
		{"another registry", "mine", "other", "", auth.SchemeBasic},
		{"another scheme", "mine", "reg", "", auth.SchemeBearer},
		{"another scope", "mine", "reg", "push", auth.SchemeBasic},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if token, err := tokens.ForRepository(test.repository).GetToken(t.Context(), test.host, test.scheme, test.key); err == nil {
				t.Errorf("got %q", token)
			}
		})
	}
	if scheme, err := tokens.ForRepository("theirs").GetScheme(t.Context(), "reg"); err != nil || scheme != auth.SchemeBasic {
		t.Errorf("how the host wants to be asked was forgotten: %v, %v", scheme, err)
	}
}

func Example() {
	cache := login.NewTokens().ForRepository("team/app")
	fetch := func(context.Context) (string, error) { return "t0ken", nil }
	token, err := cache.Set(context.Background(), "reg.example", auth.SchemeBearer, "repository:team/app:pull", fetch)
	fmt.Println(token, err)
	// Output: t0ken <nil>
}

// TestALateChallengeTakesTheFetchedToken: a request goes out before there is a
// token, and its challenge comes when another one has fetched it.
func TestALateChallengeTakesTheFetchedToken(t *testing.T) {
	tokens := login.NewTokens()
	give := func(token string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return token, nil }
	}
	late := tokens.ForRepository("app")
	if token, err := late.GetToken(t.Context(), "reg", auth.SchemeBearer, "pull"); err == nil {
		t.Fatalf("got %q before the first fetch", token)
	}
	if _, err := tokens.ForRepository("app").Set(t.Context(), "reg", auth.SchemeBearer, "pull", give("first")); err != nil {
		t.Fatal(err)
	}
	if token, err := late.Set(t.Context(), "reg", auth.SchemeBearer, "pull", give("second")); err != nil || token != "first" {
		t.Errorf("got %q, %v; want the token that was fetched meanwhile", token, err)
	}

	// A caller that was refused with that very token fetches another.
	refused := tokens.ForRepository("app")
	if token, err := refused.GetToken(t.Context(), "reg", auth.SchemeBearer, "pull"); err != nil || token != "first" {
		t.Fatalf("it was forgotten: %q, %v", token, err)
	}
	if token, err := refused.Set(t.Context(), "reg", auth.SchemeBearer, "pull", give("second")); err != nil || token != "second" {
		t.Errorf("got %q, %v; want another token than the one that was refused", token, err)
	}
}
