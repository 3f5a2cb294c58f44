# SPDX-License-Identifier: MIT
# libgguf.rb - formula for Homebrew. At a release, add a line "sha256" below the
# url with the sum of the archive: sha256sum libgguf-0.1.0.tar.xz
class Libgguf < Formula
  desc "Library and tools for GGUF model files"
  homepage "https://github.com/libgguf/libgguf"
  url "https://github.com/libgguf/libgguf/releases/download/v0.1.0/libgguf-0.1.0.tar.xz"
  license all_of: ["MIT", "CC0-1.0", "Unicode-3.0"]

  head do
    url "https://github.com/libgguf/libgguf.git", branch: "main"

    depends_on "autoconf" => :build
    depends_on "automake" => :build
    depends_on "libtool" => :build
  end

  depends_on "pkgconf" => :build
  depends_on "jansson"
  depends_on "pcre2"
  depends_on "xxhash"
  depends_on "xz"
  depends_on "zstd"

  uses_from_macos "curl"
  uses_from_macos "zlib"

  def install
    system "autoreconf", "--install" if build.head?
    system "./configure", "--disable-static",
           "--with-bash-completion-dir=#{bash_completion}", *std_configure_args
    system "make", "install"
  end

  test do
    model = doc/"tiny-llama/tiny-llama-f16.gguf"
    system bin/"gguf-quantize", model, testpath/"small.gguf", "Q4_K_M"
    assert_match "0 errors", shell_output("#{bin}/gguf-info --check #{testpath}/small.gguf")
  end
end
