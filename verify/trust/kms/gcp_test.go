package kms_test

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/kms/apiv1/kmspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const gcpRing = "projects/quay/locations/global/keyRings/ring/cryptoKeys/"

// gcpService is Google Cloud KMS: google.cloud.kms.v1.KeyManagementService over
// gRPC, for callers with a token that the service account signed itself.
type gcpService struct {
	kmspb.UnimplementedKeyManagementServiceServer
	*safe
}

func serveGCP(t testing.TB, s *safe) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewServerTLSFromCert(&earth.certificate)),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := signedByAccount(ctx); err != nil {
				return nil, status.Error(codes.Unauthenticated, err.Error())
			}
			return next(ctx, request)
		}))
	kmspb.RegisterKeyManagementServiceServer(server, &gcpService{safe: s})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	earth.route(t, gcpHost, listener.Addr().String())
}

// signedByAccount checks the caller's token (JWT, RS256).
func signedByAccount(ctx context.Context) error {
	head, _ := metadata.FromIncomingContext(ctx)
	token := strings.TrimPrefix(strings.Join(head.Get("authorization"), ""), "Bearer ")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("want a signed token")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&earth.google.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		return err
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(body, &claims); err != nil {
		return err
	}
	if claims.Issuer != googleAccount {
		return fmt.Errorf("the token is of %q", claims.Issuer)
	}
	return nil
}

// find returns the versions of the key that a resource name starts with, and
// the version that it names, if it does.
func (s *gcpService) find(resource string) (versions []crypto.Signer, version string, err error) {
	name, version, _ := strings.Cut(strings.TrimPrefix(resource, gcpRing), "/cryptoKeyVersions/")
	versions, allowed := s.versions(name)
	switch {
	case !allowed:
		return nil, "", status.Error(codes.PermissionDenied, "Permission denied on resource (or it may not exist).")
	case len(versions) == 0:
		return nil, "", status.Errorf(codes.NotFound, "CryptoKey %s not found.", resource)
	}
	return versions, version, nil
}

func (s *gcpService) key(resource string) (crypto.Signer, error) {
	versions, version, err := s.find(resource)
	if err != nil {
		return nil, err
	}
	key, ok := pick(versions, version)
	if !ok {
		return nil, status.Errorf(codes.NotFound, "CryptoKeyVersion %s not found.", resource)
	}
	return key, nil
}

func (s *gcpService) GetCryptoKey(_ context.Context, r *kmspb.GetCryptoKeyRequest) (*kmspb.CryptoKey, error) {
	if _, _, err := s.find(r.GetName()); err != nil {
		return nil, err
	}
	return &kmspb.CryptoKey{Name: r.GetName(), Purpose: kmspb.CryptoKey_ASYMMETRIC_SIGN}, nil
}

func gcpVersion(name string) *kmspb.CryptoKeyVersion {
	return &kmspb.CryptoKeyVersion{
		Name: name, State: kmspb.CryptoKeyVersion_ENABLED, Algorithm: kmspb.CryptoKeyVersion_EC_SIGN_P256_SHA256,
	}
}

func (s *gcpService) GetCryptoKeyVersion(_ context.Context, r *kmspb.GetCryptoKeyVersionRequest) (*kmspb.CryptoKeyVersion, error) {
	if _, err := s.key(r.GetName()); err != nil {
		return nil, err
	}
	return gcpVersion(r.GetName()), nil
}

// ListCryptoKeyVersions lists the newest first, as it is asked to.
func (s *gcpService) ListCryptoKeyVersions(_ context.Context, r *kmspb.ListCryptoKeyVersionsRequest) (*kmspb.ListCryptoKeyVersionsResponse, error) {
	versions, _, err := s.find(r.GetParent())
	if err != nil {
		return nil, err
	}
	if r.GetOrderBy() != "name desc" || r.GetFilter() != "state=ENABLED" {
		return nil, status.Error(codes.InvalidArgument, "this order is not spoken here")
	}
	response := &kmspb.ListCryptoKeyVersionsResponse{TotalSize: int32(len(versions))}
	for i := len(versions); i > 0; i-- {
		response.CryptoKeyVersions = append(response.CryptoKeyVersions, gcpVersion(r.GetParent()+"/cryptoKeyVersions/"+strconv.Itoa(i)))
	}
	return response, nil
}

func (s *gcpService) GetPublicKey(_ context.Context, r *kmspb.GetPublicKeyRequest) (*kmspb.PublicKey, error) {
	key, err := s.key(r.GetName())
	if err != nil {
		return nil, err
	}
	return &kmspb.PublicKey{Name: r.GetName(), Pem: publicPEM(key), Algorithm: kmspb.CryptoKeyVersion_EC_SIGN_P256_SHA256}, nil
}

func (s *gcpService) AsymmetricSign(_ context.Context, r *kmspb.AsymmetricSignRequest) (*kmspb.AsymmetricSignResponse, error) {
	key, err := s.key(r.GetName())
	if err != nil {
		return nil, err
	}
	signature, err := signDigest(key, r.GetDigest().GetSha256())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	sum := crc32.Checksum(signature, crc32.MakeTable(crc32.Castagnoli))
	return &kmspb.AsymmetricSignResponse{
		Name: r.GetName(), Signature: signature, SignatureCrc32C: wrapperspb.Int64(int64(sum)), VerifiedDigestCrc32C: r.GetDigestCrc32C() != nil,
	}, nil
}
