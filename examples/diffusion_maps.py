"""Draw the diffusion maps of a Swiss roll and of the digits: python examples/diffusion_maps.py [picture.png]"""

import sys

from lanczosnet.diffusion_maps import draw_swiss_roll_and_digits

if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "diffusion_maps.png"
    draw_swiss_roll_and_digits(path)
    print(f"wrote {path}")
