"""Percentiles of eight statistics over 2,845 columns of real tables.

Source: the statistics that Zeng et al., An Empirical Evaluation of Columnar Storage Formats, VLDB 2023, publish for six
workloads. Each tuple has the 10th, 25th, 50th, 75th and 90th percentile over the columns of one workload and type.
profile.py defines how the statistics are measured. This module contains only data.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Percentiles = tuple[float, float, float, float, float]
PERCENTS = (10, 25, 50, 75, 90)


@dataclass(frozen=True)
class TypeProfile:
    """Percentiles over the columns of one type in one workload.

    `columns` is the number of columns that this type gets in a realistic table, which has 20 columns.
    """

    columns: int
    distinct_values: Percentiles
    distinct_ratio: Percentiles
    null_ratio: Percentiles
    sortedness: Percentiles
    zipf_exponent: Percentiles
    top_value_share: Percentiles
    mean_run_length: Percentiles
    width_bytes: Percentiles | None = None


PROFILES: Mapping[str, Mapping[str, TypeProfile]] = {
    "core": {
        "float64": TypeProfile(
            columns=4,
            distinct_values=(1382, 19280, 158800, 954000, 2624000),
            distinct_ratio=(0.001141, 0.00668, 0.08516, 0.3927, 0.787),
            null_ratio=(0, 0, 0, 0.07761, 0.1953),
            sortedness=(0.03324, 0.04975, 0.1178, 0.3465, 0.8149),
            zipf_exponent=(0.4429, 0.6984, 0.9742, 1.291, 2.215),
            top_value_share=(0.0004997, 0.008035, 0.1044, 0.299, 0.6397),
            mean_run_length=(1.824, 2.594, 7.698, 28.6, 193.9),
        ),
        "int64": TypeProfile(
            columns=9,
            distinct_values=(2, 2, 31, 1465, 13780),
            distinct_ratio=(6.384e-07, 1.18e-06, 3.507e-05, 0.0004731, 0.006016),
            null_ratio=(0, 0, 0, 0.007173, 0.2052),
            sortedness=(0.04199, 0.1011, 0.6227, 0.9501, 0.9971),
            zipf_exponent=(0, 0, 0.6296, 1.076, 1.998),
            top_value_share=(0.01058, 0.04734, 0.3278, 0.9139, 0.9916),
            mean_run_length=(2.155, 6.151, 32.33, 230.5, 439.5),
        ),
        "string": TypeProfile(
            columns=7,
            distinct_values=(2, 14, 304, 24520, 703600),
            distinct_ratio=(3.969e-07, 4.74e-06, 0.000176, 0.01556, 0.3985),
            null_ratio=(0, 0, 1.093e-07, 0.05295, 0.7568),
            sortedness=(0.1456, 0.542, 0.9155, 0.9992, 1),
            zipf_exponent=(0, 0.4237, 0.7521, 1.213, 2.415),
            top_value_share=(0.0004425, 0.01058, 0.1332, 0.5523, 0.9424),
            mean_run_length=(2.341, 17.33, 100.5, 434.7, 510.3),
            width_bytes=(1.412, 4, 9.599, 17.4, 30.76),
        ),
    },
    "bi": {
        "float64": TypeProfile(
            columns=4,
            distinct_values=(2775, 32660, 170000, 969800, 2416000),
            distinct_ratio=(0.001478, 0.01577, 0.1196, 0.4541, 0.8051),
            null_ratio=(0, 0, 0, 0.09093, 0.2076),
            sortedness=(0.03432, 0.05606, 0.1219, 0.3074, 0.7873),
            zipf_exponent=(0.587, 0.7408, 1.012, 1.308, 2.25),
            top_value_share=(0.002536, 0.01109, 0.1162, 0.3096, 0.6469),
            mean_run_length=(1.822, 3.064, 8.77, 30.4, 178),
        ),
        "int64": TypeProfile(
            columns=9,
            distinct_values=(2, 2, 23, 1292, 10960),
            distinct_ratio=(6.384e-07, 1.158e-06, 2.518e-05, 0.0004666, 0.002779),
            null_ratio=(0, 0, 0, 0.02026, 0.2378),
            sortedness=(0.04207, 0.09783, 0.6131, 0.9502, 0.9962),
            zipf_exponent=(0, 0, 0.6132, 1.023, 1.803),
            top_value_share=(0.01086, 0.04735, 0.3382, 0.9206, 0.9922),
            mean_run_length=(2.157, 6.229, 32.98, 239.2, 450),
        ),
        "string": TypeProfile(
            columns=7,
            distinct_values=(2, 9, 129, 12890, 306900),
            distinct_ratio=(3.969e-07, 3.47e-06, 0.0001231, 0.004573, 0.2621),
            null_ratio=(0, 0, 6.021e-07, 0.06215, 0.7706),
            sortedness=(0.2247, 0.6369, 0.9546, 0.9996, 1),
            zipf_exponent=(0, 0.431, 0.7591, 1.24, 2.372),
            top_value_share=(0.002222, 0.02059, 0.1413, 0.5918, 0.9436),
            mean_run_length=(5.769, 25.67, 144.1, 463.3, 510.8),
            width_bytes=(1.458, 4, 9.645, 17.19, 30.95),
        ),
    },
    "classic": {
        "float64": TypeProfile(
            columns=1,
            distinct_values=(308, 585.5, 691, 1326, 186000),
            distinct_ratio=(0.0001629, 0.0007938, 0.001563, 0.00316, 0.1437),
            null_ratio=(0, 0, 0.03398, 0.1346, 0.5134),
            sortedness=(0.07602, 0.09588, 0.2673, 0.3772, 0.5344),
            zipf_exponent=(0.3725, 0.4763, 0.9517, 1.264, 1.879),
            top_value_share=(0.003126, 0.02869, 0.08769, 0.274, 0.5617),
            mean_run_length=(2.984, 3.369, 6.406, 24.29, 69.42),
        ),
        "int64": TypeProfile(
            columns=7,
            distinct_values=(5.8, 193, 691, 5041, 50810),
            distinct_ratio=(4.019e-07, 9.709e-05, 0.0008069, 0.008445, 0.3051),
            null_ratio=(0, 0, 0, 2.861e-07, 0.01274),
            sortedness=(0.03906, 0.149, 0.6856, 0.8703, 0.9937),
            zipf_exponent=(5.376e-11, 0.4322, 1.279, 3.087, 4.315),
            top_value_share=(1.384e-06, 0.004999, 0.2865, 0.8406, 0.9324),
            mean_run_length=(1, 3.053, 11.29, 63.43, 149.5),
        ),
        "string": TypeProfile(
            columns=12,
            distinct_values=(11.4, 423, 37890, 1293000, 6908000),
            distinct_ratio=(1.067e-06, 9.512e-05, 0.09518, 0.7786, 1),
            null_ratio=(0, 0, 0, 3.179e-06, 0.4792),
            sortedness=(0.02404, 0.08216, 0.4542, 0.828, 0.9448),
            zipf_exponent=(7.451e-10, 0.1176, 0.7462, 1.2, 3.111),
            top_value_share=(9.348e-07, 7.47e-05, 0.03607, 0.4419, 0.9265),
            mean_run_length=(1, 1.399, 5.881, 26.16, 174.5),
            width_bytes=(1.56, 5.334, 9.434, 19.63, 23.33),
        ),
    },
    "geo": {
        "float64": TypeProfile(
            columns=2,
            distinct_values=(5776000, 6701000, 11200000, 15850000, 17030000),
            distinct_ratio=(0.3693, 0.3966, 0.4148, 0.4595, 0.5344),
            null_ratio=(0, 0, 0, 0, 0),
            sortedness=(0.04419, 0.04446, 0.05288, 0.07641, 0.1039),
            zipf_exponent=(0.5178, 0.5187, 0.5411, 0.5687, 0.5788),
            top_value_share=(4.682e-05, 4.903e-05, 5.121e-05, 5.849e-05, 6.988e-05),
            mean_run_length=(1.712, 1.785, 2.161, 2.51, 2.534),
        ),
        "int64": TypeProfile(
            columns=6,
            distinct_values=(90.2, 665, 11240, 6236000, 16770000),
            distinct_ratio=(2.084e-06, 1.537e-05, 0.001329, 0.1914, 0.41),
            null_ratio=(0, 0, 0, 0, 0),
            sortedness=(0.06143, 0.1957, 0.6251, 0.9552, 1),
            zipf_exponent=(7.014e-11, 0.5771, 0.7661, 1.308, 3.99),
            top_value_share=(0.001204, 0.008947, 0.1161, 0.8519, 0.9825),
            mean_run_length=(2.17, 3.81, 39.86, 286.4, 447.6),
        ),
        "string": TypeProfile(
            columns=12,
            distinct_values=(113.2, 723.2, 22370, 1737000, 4553000),
            distinct_ratio=(1.563e-05, 7.997e-05, 0.008389, 0.274, 0.615),
            null_ratio=(0, 1.38e-07, 0.0003817, 0.2424, 0.812),
            sortedness=(0.02245, 0.02956, 0.4026, 0.8479, 0.9546),
            zipf_exponent=(0.3271, 0.553, 0.6342, 0.836, 1.167),
            top_value_share=(0.0001635, 0.0003953, 0.006811, 0.06354, 0.2651),
            mean_run_length=(1.046, 1.082, 5.023, 107.6, 261.3),
            width_bytes=(2.038, 3.992, 6.138, 16.33, 25),
        ),
    },
    "log": {
        "float64": TypeProfile(
            columns=8,
            distinct_values=(24030, 187800, 665100, 3401000, 8968000),
            distinct_ratio=(0.0008217, 0.008529, 0.0302, 0.1544, 0.4072),
            null_ratio=(2.125e-06, 2.429e-06, 2.543e-06, 3.405e-06, 3.469e-06),
            sortedness=(0.3149, 0.3491, 0.438, 0.9507, 0.9919),
            zipf_exponent=(0.6188, 0.7296, 1.121, 1.28, 1.404),
            top_value_share=(0.0008587, 0.005331, 0.1396, 0.2443, 0.3517),
            mean_run_length=(6.087, 20.15, 51.45, 223.5, 454.2),
        ),
        "int64": TypeProfile(
            columns=5,
            distinct_values=(1, 1.75, 7.5, 14, 597900),
            distinct_ratio=(4.255e-08, 4.577e-08, 1.346e-07, 5.596e-07, 0.007893),
            null_ratio=(0, 0, 0, 4.604e-06, 4.604e-06),
            sortedness=(0.39, 0.7639, 0.9675, 1, 1),
            zipf_exponent=(0, 0, 0.7336, 1.687, 4.558),
            top_value_share=(0.1504, 0.4388, 0.8184, 0.9974, 1),
            mean_run_length=(32.86, 46.91, 227.4, 512, 512),
        ),
        "string": TypeProfile(
            columns=7,
            distinct_values=(2.7, 6, 39440, 1191000, 8908000),
            distinct_ratio=(3.782e-08, 2.601e-07, 0.003452, 0.04894, 0.2137),
            null_ratio=(0, 0, 0, 0, 0.02166),
            sortedness=(0.5427, 0.944, 1, 1, 1),
            zipf_exponent=(0.003116, 0.2304, 1.015, 1.197, 2.353),
            top_value_share=(2.791e-05, 0.003884, 0.2, 0.5273, 0.9455),
            mean_run_length=(2.403, 38.23, 202.3, 511.8, 512),
            width_bytes=(5.303, 7.132, 11.64, 18, 20.9),
        ),
    },
    "ml": {
        "float64": TypeProfile(
            columns=9,
            distinct_values=(518.6, 5217, 16030, 23650, 1111000),
            distinct_ratio=(0.0004098, 0.002032, 0.004035, 0.00576, 0.1543),
            null_ratio=(0, 0, 0, 0, 0),
            sortedness=(0.03061, 0.03184, 0.0366, 0.04737, 1),
            zipf_exponent=(0.3032, 0.3124, 0.3362, 0.6666, 1.324),
            top_value_share=(0.0002026, 0.0002561, 0.0003822, 0.003846, 0.2621),
            mean_run_length=(1.886, 2.009, 2.042, 2.072, 10.66),
        ),
        "int64": TypeProfile(
            columns=4,
            distinct_values=(12.2, 264.5, 2886, 97300, 422400),
            distinct_ratio=(1.656e-05, 0.0001636, 0.003727, 0.02969, 0.9918),
            null_ratio=(0, 0, 0, 0, 0),
            sortedness=(0.02286, 0.1849, 0.5733, 0.9, 0.9996),
            zipf_exponent=(4.639e-11, 0.08047, 0.7234, 1.186, 1.891),
            top_value_share=(2.596e-06, 0.0008205, 0.03479, 0.3123, 0.6308),
            mean_run_length=(1.001, 1.627, 5.039, 13.16, 120.2),
        ),
        "string": TypeProfile(
            columns=7,
            distinct_values=(3.1, 25.75, 761.5, 8169, 164200),
            distinct_ratio=(5.621e-07, 9.542e-06, 0.0004932, 0.01934, 0.8716),
            null_ratio=(0, 0, 0, 0, 0),
            sortedness=(0.02343, 0.04744, 0.4726, 0.9555, 0.9983),
            zipf_exponent=(0.01808, 0.3629, 0.6875, 2.056, 5.717),
            top_value_share=(0.0001959, 0.0008189, 0.1253, 0.6273, 0.9725),
            mean_run_length=(1.002, 3.02, 11.82, 135.6, 437.7),
            width_bytes=(1, 3.872, 6.451, 14.26, 54.47),
        ),
    },
}
