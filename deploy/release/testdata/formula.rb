class Quaymaster < Formula
  desc "Decides which container images may run, by signatures and attestations"
  homepage "https://github.com/quaymaster/quaymaster"
  version "1.2.3"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/quaymaster/quaymaster/releases/download/v1.2.3/quaymaster_v1.2.3_darwin_arm64.tar.gz"
      sha256 "000000000000000000000000000000000000000000000000000000000000000b"
    end
    on_intel do
      url "https://github.com/quaymaster/quaymaster/releases/download/v1.2.3/quaymaster_v1.2.3_darwin_amd64.tar.gz"
      sha256 "000000000000000000000000000000000000000000000000000000000000000a"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/quaymaster/quaymaster/releases/download/v1.2.3/quaymaster_v1.2.3_linux_arm64.tar.gz"
      sha256 "000000000000000000000000000000000000000000000000000000000000000d"
    end
    on_intel do
      url "https://github.com/quaymaster/quaymaster/releases/download/v1.2.3/quaymaster_v1.2.3_linux_amd64.tar.gz"
      sha256 "000000000000000000000000000000000000000000000000000000000000000c"
    end
  end

  def install
    bin.install "quaymaster"
    generate_completions_from_executable(bin/"quaymaster", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/quaymaster version")
  end
end
